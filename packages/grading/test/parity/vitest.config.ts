import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Parity with the official graders: needs Python with the swebench package. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.parity.ts"],
    testTimeout: 10 * 60_000,
  },
});
