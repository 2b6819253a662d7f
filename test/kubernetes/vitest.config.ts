import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Tests on a Kubernetes of one node that is started for them; the first time its parts are built. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL("../..", import.meta.url)),
    include: ["test/kubernetes/**/*.test.ts"],
    globalSetup: [fileURLToPath(new URL("./global-setup.ts", import.meta.url))],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120 * 60_000,
  },
});
