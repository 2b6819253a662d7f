import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Tests that need a Docker engine: one at a time, on images that are built once before the first of them. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL("../..", import.meta.url)),
    include: ["test/compose/**/*.test.ts", "test/containers/**/*.test.ts"],
    globalSetup: [fileURLToPath(new URL("./global-setup.ts", import.meta.url))],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 60 * 60_000,
  },
});
