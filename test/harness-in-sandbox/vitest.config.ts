import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Real harnesses in real sandboxes, run by all services of a deployment: one trial at a time. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.test.ts"],
    fileParallelism: false,
    testTimeout: 20 * 60_000,
    hookTimeout: 30 * 60_000,
  },
});
