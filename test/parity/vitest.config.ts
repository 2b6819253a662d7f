import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Parity with a real vLLM server: one server at a time, each minutes in starting on a small machine. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.test.ts"],
    fileParallelism: false,
    testTimeout: 10 * 60_000,
    hookTimeout: 30 * 60_000,
  },
});
