import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Real projects in real sandboxes, imported, validated, solved by a real harness and graded by all services. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.test.ts"],
    fileParallelism: false,
    testTimeout: 15 * 60_000,
    hookTimeout: 20 * 60_000,
  },
});
