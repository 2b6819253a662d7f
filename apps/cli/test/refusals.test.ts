/** What the command line refuses: exit code 2, a stable code, and nothing of a run left on disk. Uses dist. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runPaths } from "../src/quickstart/run-directory.js";
import { projectPaths } from "../src/site/project-paths.js";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));

function mortise(args: readonly string[], environment: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
    encoding: "utf8",
    env: { ...process.env, ...environment },
  });
  return { status, stdout, stderr };
}

test.each([
  ["an unknown key", ["--set", "trainer.stepz=3"], {}, "MORTISE_CONFIG_UNKNOWN_KEY (trainer.stepz)"],
  ["an impossible value", ["--set", "rollout.temperature=nan"], {}, "MORTISE_CONFIG_INVALID"],
  ["no server at NATS_URL", [], { NATS_URL: "nats://u:hidden@127.0.0.1:1" }, "NATS_URL"],
])("a quick start refused for %s leaves no run behind", (_name, flags, environment, refusal) => {
  const { status, stderr } = mortise(["quickstart", ...flags], environment);
  expect(status).toBe(2);
  expect(stderr).toContain(refusal);
  expect(stderr).not.toContain("hidden");
  const [, runId] = /^run (\S+)$/m.exec(stderr)!;
  expect(existsSync(runPaths(projectPaths(), runId!).directory)).toBe(false);
});

test("a path that is not there is the operator's, in words and as JSON", () => {
  const absent = join(import.meta.dirname, "absent");
  const { status, stdout, stderr } = mortise(["tasks", "validate", absent, "--json"]);
  expect(status).toBe(2);
  expect(stderr).toContain(`MORTISE_OPERATOR_FILES (${absent})`);
  expect(stderr).not.toContain("    at ");
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: "MORTISE_OPERATOR_FILES", field: absent } });
});

test("a directory without tasks is not a valid one", () => {
  const { status, stderr } = mortise(["tasks", "validate", import.meta.dirname]);
  expect(status).toBe(2);
  expect(stderr).toContain("MORTISE_TASK_UNKNOWN");
});

test.each([
  [
    "an option nobody knows",
    ["tasks", "index", "x", "--per-repositry", "2"],
    "--per-repositry",
    "tasks index",
  ],
  ["a run that would be a path", ["eval", "--run-id", "../elsewhere"], "--run-id", "eval"],
  ["a value that is none", ["tasks", "validate", "x", "--jobs", "abc"], "--jobs", "tasks validate"],
  ["an argument too few", ["sandbox", "list"], "runId", "sandbox list"],
])("%s is told by its name, with where that command is described", (_name, args, field, command) => {
  const { status, stderr } = mortise(args);
  expect(status).toBe(2);
  expect(stderr).toContain(`MORTISE_OPERATOR_USAGE (${field}): `);
  expect(stderr).toContain(`fix: See \`mortise ${command} --help\`.`);
});

test("a configuration file that cannot be read is told by its path", () => {
  const absent = join(import.meta.dirname, "absent.toml");
  const { status, stderr } = mortise(["check", "--site", absent, "--run", absent]);
  expect(status).toBe(2);
  expect(stderr).toContain(`MORTISE_CONFIG_UNREADABLE (${absent})`);
});

test("what --set makes of a protocol is held together as a file is", () => {
  const flags = [
    "--checkpoint",
    "x",
    "--harness",
    "mini",
    "--set",
    "prompt.instruction={instruction} {tests}",
  ];
  const { status, stderr } = mortise(["infer", ...flags]);
  expect(status).toBe(2);
  expect(stderr).toContain("MORTISE_CONFIG_INVALID (prompt.instruction)");
});

test("a place where verdicts cannot be kept is told before anything is graded", () => {
  const task = mkdtempSync(join(tmpdir(), "mortise-refusals-"));
  const file = join(task, "task.toml");
  writeFileSync(file, "");
  const out = join(file, "out");
  const { status, stderr } = mortise(["verify", task, "--out", out]);
  rmSync(task, { recursive: true });
  expect(status).toBe(2);
  expect(stderr).toContain("MORTISE_OPERATOR_FILES");
  expect(stderr).toContain(out);
  expect(stderr).not.toContain("sandbox backend");
});

test("of a run that is no quick start the status asks for its site", () => {
  const { status, stderr } = mortise(["status", "nobody"]);
  expect(status).toBe(2);
  expect(stderr).toContain("MORTISE_OPERATOR_RUN_UNKNOWN (runId)");
  expect(stderr).toContain("--site");
});
