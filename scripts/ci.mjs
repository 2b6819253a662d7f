#!/usr/bin/env node
/**
 * Owns the order of a full check: the README's test command, the static checks, and the main job shortened.
 * Does not own what each of them does. Prints a line per part and `N passed, N failed` last; a part that
 * reports its own count adds that, any other part counts as one.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root, toolEnvironment } from "./bootstrap/paths.mjs";
import { checkQuickstart } from "./ci/quickstart-gates.mjs";

const COUNTS = /^(\d+) passed, (\d+) failed/;

/** Static checks: scripts of package.json, run with the project's own tools, which the first part installs. */
const CHECKS = ["lint", "typecheck", "check:proto", "check:boundaries", "check:licences", "check:docs"];

/** Runs a command with its output shown. @returns exit code and the lines of standard output. */
function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: root,
      env: toolEnvironment(),
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
      process.stdout.write(chunk);
    });
    child.on("close", (code) => resolve({ code: code ?? 1, lines: output.trimEnd().split("\n") }));
  });
}

const total = { passed: 0, failed: 0 };
function record(name, passed, failed) {
  total.passed += passed;
  total.failed += failed;
  process.stdout.write(
    `ci: ${name}: ${failed === 0 ? "passed" : "FAILED"} (${passed} passed, ${failed} failed)\n`,
  );
}

const tests = await run("npm", ["test"]);
const [, passed = "0", failed = "0"] = COUNTS.exec(tests.lines.at(-1)) ?? [];
const isCounted = Number(passed) + Number(failed) > 0;
const uncounted = tests.code !== 0 && Number(failed) === 0 ? 1 : 0;
record("tests", Number(passed), isCounted ? Number(failed) + uncounted : 1);

const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
for (const check of CHECKS) {
  const { code } = await run("sh", ["-c", scripts[check]]);
  record(check, code === 0 ? 1 : 0, code === 0 ? 0 : 1);
}

/** One of the kill tests; the others differ only in what is killed, and each is a run of its own. */
const KILLED = "proxy";
const kill = await run("sh", ["-c", `${scripts["test:kill"]} service.test.ts -t ${KILLED}`]);
record(`kill -9 of ${KILLED} in a run`, kill.code === 0 ? 1 : 0, kill.code === 0 ? 0 : 1);

const quickstart = await run("npm", [
  "run",
  "--silent",
  "quickstart",
  "--",
  "--json",
  "--steps=3",
  "--eval-attempts=64",
]);
for (const gate of checkQuickstart(quickstart.code, quickstart.lines.at(-1) ?? "")) {
  record(
    `quick start: ${gate.name}${gate.holds ? "" : ` (${gate.found})`}`,
    gate.holds ? 1 : 0,
    gate.holds ? 0 : 1,
  );
}

process.stdout.write(`${total.passed} passed, ${total.failed} failed\n`);
process.exitCode = total.failed === 0 ? 0 : 1;
