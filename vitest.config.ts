import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: [
      "scripts/test/**/*.test.ts",
      "packages/*/test/**/*.test.ts",
      "services/*/test/**/*.test.ts",
      "apps/*/test/**/*.test.ts",
      "harnesses/*/test/**/*.test.ts",
    ],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
