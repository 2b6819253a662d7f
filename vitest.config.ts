import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: [
      "scripts/test/**/*.test.ts",
      "packages/*/test/**/*.test.ts",
      "services/*/test/**/*.test.ts",
      "apps/*/test/**/*.test.ts",
      "harnesses/*/test/**/*.test.ts",
      "test/fuzz/*.test.ts",
      "test/listener/*.test.ts",
    ],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    // The default second is a claim about the machine's speed, not about the code.
    expect: { poll: { timeout: 15_000 } },
  },
});
