import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** `mortise eval` and `mortise infer` as processes, on real sites; some of them are killed. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.test.ts"],
    fileParallelism: false,
    testTimeout: 10 * 60_000,
    hookTimeout: 10 * 60_000,
  },
});
