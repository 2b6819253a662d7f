/** `mortise sandbox` and the warnings of `status` and `check`, at a real manager on a real bus. Uses dist. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { KeepPolicy, MetricsRecordSchema, RunPhase, subject } from "@mortise/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ManagerWorld, RUN } from "../../../services/sandbox-manager/test/manager-world.js";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const base = mkdtempSync(join(tmpdir(), "mortise-cli-sandbox-"));
let world: ManagerWorld;

beforeAll(async () => {
  world = await ManagerWorld.start({ directory: base, backend: "process" });
  writeFileSync(join(base, "identity/observer.json"), JSON.stringify(world.nats.identity("observer")));
});
afterAll(async () => {
  await world?.stop();
  rmSync(base, { recursive: true, force: true });
});

async function mortise(args: readonly string[], input = "") {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, MORTISE_SITE: join(base, "site.toml") },
  });
  child.stdin.end(input);
  const exit = once(child, "exit");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { status: (await exit)[0] as number, stdout, stderr };
}

test("a kept sandbox is listed, looked into line by line or with one command, and removed", async () => {
  world.model.reply = { write: { "left.txt": "by the agent\n" } };
  const { trial } = await world.started({ keep: KeepPolicy.ALWAYS });
  await world.ended(trial);
  const { sandboxes } = JSON.parse((await mortise(["sandbox", "list", RUN, "--json"])).stdout);
  expect(sandboxes).toMatchObject([{ trial, task: "add-numbers", termination: "completed" }]);
  const one = await mortise(["sandbox", "exec", RUN, trial, "cat", "left.txt"]);
  expect(one).toMatchObject({ status: 0, stdout: "by the agent\n" });
  const lines = await mortise(
    ["sandbox", "exec", RUN, trial],
    "echo more >> left.txt\n\ncat left.txt; exit 3\n",
  );
  expect(lines).toMatchObject({ status: 3, stdout: "by the agent\nmore\n" });
  expect((await mortise(["sandbox", "release", RUN, trial])).stdout).toBe("removed\n");
  expect(await mortise(["sandbox", "exec", RUN, trial, "true"])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("MORTISE_SANDBOX_NOT_KEPT (trial)"),
  });
}, 60_000);

test("what a manager warns of is in its status and in that of the run", async () => {
  const { managers } = JSON.parse((await mortise(["sandbox", "status", RUN, "--json"])).stdout);
  expect(managers).toMatchObject([
    { backend: "process", insecure: true, running: 0, health: { startP50Ms: expect.any(Number) } },
  ]);
  expect((await mortise(["sandbox", "status", RUN])).stdout).toContain(
    "warning: the process backend isolates nothing",
  );
  await world.bus.publish({
    subject: subject.phase(RUN),
    schema: MetricsRecordSchema,
    message: { record: { case: "phase", value: { run: RUN, phase: RunPhase.TRAIN } } },
    dedupeId: `${RUN}/phase/train`,
  });
  expect((await mortise(["status", RUN])).stdout).toMatch(/warning: sandbox-manager at .*isolates nothing/);
}, 60_000);
