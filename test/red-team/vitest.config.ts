import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Cheaters in real sandboxes, run and graded by all services of a deployment. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.test.ts"],
    fileParallelism: false,
    testTimeout: 30 * 60_000,
    hookTimeout: 30 * 60_000,
  },
});
