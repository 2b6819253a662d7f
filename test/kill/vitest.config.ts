import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Tests that kill a service of a real run: one run at a time, each as slow as a short quick start. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.test.ts"],
    globalSetup: [fileURLToPath(new URL("./warm-policy.ts", import.meta.url))],
    fileParallelism: false,
    testTimeout: 20 * 60_000,
    hookTimeout: 20 * 60_000,
  },
});
