/** Real processes: what is promised about deaths and left-overs is a promise about the operating system. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ProcessSpec, Supervisor } from "../../src/supervisor/supervisor.js";

let directory: string;
let supervisor: Supervisor;
const restarts: string[] = [];
const givenUp: string[] = [];
const faults: unknown[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mortise-supervisor-"));
  restarts.length = 0;
  givenUp.length = 0;
  faults.length = 0;
  supervisor = new Supervisor({
    onRestart: (name, reason) => restarts.push(`${name}: ${reason}`),
    onGaveUp: (name, reason) => givenUp.push(`${name}: ${reason}`),
    onFault: (error) => faults.push(error),
  });
});
afterEach(async () => {
  await supervisor.stopInOrder([]);
  rmSync(directory, { recursive: true, force: true });
  expect(faults).toEqual([]);
});

const spec = (name: string, script: string, drainMs = 10_000): ProcessSpec => ({
  name,
  argv: ["/bin/sh", "-c", script],
  cwd: directory,
  environment: process.env,
  logFile: join(directory, `${name}.log`),
  errorFile: join(directory, `${name}.err`),
  drainMs,
  orphanGraceSeconds: [0, 5],
});
const pidOf = (name: string) => supervisor.status().find((status) => status.name === name)?.pid;
const isAlive = (pid: number) => existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(statusOf(pid));

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "State:\tZ (gone between two looks)";
  }
}

/** Waits for something to become true; the test's own timeout is the limit. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
}
const pidIn = async (file: string) => {
  await until(() => existsSync(file) && readFileSync(file, "utf8").endsWith("\n"));
  return Number(readFileSync(file, "utf8"));
};

describe.skipIf(process.platform !== "linux")("the supervisor", () => {
  test("starts the dead again and counts it; the pid is the program's own", async () => {
    supervisor.start(spec("steady", "echo $$ >>pids; exec sleep 600"));
    const first = await pidIn(join(directory, "pids"));
    expect(pidOf("steady")).toBe(first);
    process.kill(first, "SIGKILL");
    await until(() => readFileSync(join(directory, "pids"), "utf8").split("\n").length === 3);
    expect(restarts).toEqual(["steady: signal SIGKILL"]);
    expect(supervisor.status()).toMatchObject([{ name: "steady", phase: "running", restarts: 1 }]);
    expect(isAlive(first)).toBe(false);
  });
  test("does not start again what says that the operator must act", async () => {
    supervisor.start(spec("refusing", "echo 'MORTISE_CONFIG_INVALID' >&2; exit 2"));
    await until(() => givenUp.length === 1);
    expect(givenUp).toEqual(["refusing: exit code 2"]);
    expect(readFileSync(join(directory, "refusing.err"), "utf8")).toBe("MORTISE_CONFIG_INVALID\n");
  });
  test("stops with SIGTERM, kills what ignores it, in the order given", async () => {
    supervisor.start(
      spec("polite", "trap 'echo polite >>order; exit 0' TERM; echo up; while :; do sleep 0.05; done"),
    );
    supervisor.start(spec("stubborn", "trap '' TERM; echo up; while :; do sleep 0.05; done", 100));
    await until(() => ["polite", "stubborn"].every((name) => existsSync(join(directory, `${name}.log`))));
    await until(() =>
      ["polite", "stubborn"].every((name) => readFileSync(join(directory, `${name}.log`), "utf8") === "up\n"),
    );
    const stubborn = pidOf("stubborn")!;
    await supervisor.stopInOrder([["polite"], ["stubborn"]]);
    expect(readFileSync(join(directory, "order"), "utf8")).toBe("polite\n");
    expect(isAlive(stubborn)).toBe(false);
    expect(restarts).toEqual([]);
  });
  test("sweeps what a dead process leaves behind", async () => {
    supervisor.start(spec("parent", "sleep 600 & echo $! >child; wait"));
    const child = await pidIn(join(directory, "child"));
    process.kill(pidOf("parent")!, "SIGKILL");
    await until(() => restarts.length === 1);
    await until(() => !isAlive(child));
  });
  test("leaves no process when it is itself killed", async () => {
    const module = pathToFileURL(join(import.meta.dirname, "../../dist/supervisor/supervisor.js")).href;
    const child = spec("orphan", "echo $$ >orphan; sleep 600 & echo $! >grandchild; wait");
    const program = join(directory, "supervise.mjs");
    const events = "{ onRestart() {}, onGaveUp() {}, onFault(error) { throw error; } }";
    writeFileSync(
      program,
      `import { Supervisor } from ${JSON.stringify(module)};\nnew Supervisor(${events}).start({ ...${JSON.stringify(child)}, environment: process.env });\n`,
    );
    const killed = spawn(process.execPath, [program], { stdio: "ignore" });
    const orphan = await pidIn(join(directory, "orphan"));
    const grandchild = await pidIn(join(directory, "grandchild"));
    killed.kill("SIGKILL");
    await until(() => !isAlive(orphan) && !isAlive(grandchild));
  });
});
