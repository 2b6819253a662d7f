import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Real harnesses, obtained from their registries: one process tree at a time, each minutes long. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.test.ts"],
    fileParallelism: false,
    testTimeout: 60 * 60_000,
  },
});
