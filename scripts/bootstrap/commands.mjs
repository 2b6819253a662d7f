/** Owns the hand-over to Node 24: which program a bootstrap command becomes, and what is told about its end. */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { capture, foreground } from "./child.mjs";
import { cliMain, node24, root, toolEnvironment } from "./paths.mjs";

/** Runs the CLI with these arguments on Node 24. @returns its exit code. */
export function runCli(args) {
  return foreground(node24, [cliMain, ...args], { env: toolEnvironment() });
}

export function runQuickstart(args) {
  return runCli(["quickstart", ...args]);
}

/**
 * Runs vitest with a real nats-server provisioned, and closes with one plain line, `N passed, N failed`.
 * @returns vitest's exit code; 1 when it reported no test at all, because such a run proves nothing.
 */
export async function runTests(args) {
  const report = join(root, ".mortise", "test", "results.json");
  mkdirSync(dirname(report), { recursive: true });
  rmSync(report, { force: true });
  const server = await provisionServer();
  const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const code = await foreground(node24, [vitest, "run", ...reporters, ...args], {
    cwd: root,
    env: { ...toolEnvironment(), ...server },
  });
  const { passed, failed, skipped } = counts(report);
  process.stdout.write(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}\n`);
  return code === 0 && passed + failed === 0 ? 1 : code;
}

/** The server's path by the variable the test kit reads; nothing when it could not be had, which it then says. */
async function provisionServer() {
  const { code, output } = await capture(node24, [cliMain, "provision", "nats-server", "--json"], {
    cwd: root,
    env: toolEnvironment(),
  });
  const last = output.trim().split("\n").at(-1) ?? "";
  if (code !== 0) {
    process.stderr.write(`${output}\n`);
    return {};
  }
  return { MORTISE_NATS_SERVER: JSON.parse(last).path };
}

function counts(report) {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numFailedTestSuites } = JSON.parse(
      readFileSync(report, "utf8"),
    );
    // A file that could not be loaded ran no test and failed all the same.
    return {
      passed: numPassedTests,
      failed: numFailedTests || numFailedTestSuites,
      skipped: numPendingTests,
    };
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return { passed: 0, failed: 0, skipped: 0 };
  }
}
