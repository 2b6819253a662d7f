/** A real manager process on a real NATS server: the life of a trial as the scheduler and the verifier see it. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Content, Stage, TerminationReason } from "@mortise/contracts";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { RuncBackend } from "../src/backend/runc/backend.js";
import { decodePatch } from "../src/patch/codec.js";
import { closedAddress, inlineOf, ManagerWorld, RUN, TASK } from "./manager-world.js";

const base = mkdtempSync(path.join(tmpdir(), "mortise-manager-"));
const runc = await new RuncBackend({ stateDirectory: base, runc: "runc" }).availability();
const backends = runc.ok ? ["runc", "process"] : ["process"];
if (!runc.ok) console.log(`service tests on runc skipped: ${runc.reason}`);
afterAll(() => rmSync(base, { recursive: true, force: true }));

describe.each(backends)("sandbox-manager on %s", (backend) => {
  let world: ManagerWorld;
  const directory = path.join(base, backend);

  beforeAll(async () => {
    world = await ManagerWorld.start({ directory, backend });
  });
  afterEach(() => world.model.reset());
  afterAll(() => world?.stop());

  const launch = (changes?: Record<string, unknown>) => world.launch(changes);
  const started = (changes?: Record<string, unknown>) => world.started(changes);
  const report = (trial: string, kind: "prepared" | "ended" | "failed") => world.report(trial, kind);
  const ended = (trial: string) => world.ended(trial);
  const queued = () => world.queued();

  const runOnce: ManagerWorld["runOnce"] = (request) => world.runOnce(request);

  test("a trial is prepared, waits for its slot, runs, and its change can be graded", async () => {
    world.model.reply = { write: { "src/add.cjs": "exports.add = (a, b) => a + b;\n" } };
    const trial = await launch();
    const prepared = await report(trial, "prepared");
    expect(prepared).toMatchObject({ backend, insecure: backend === "process" });
    expect(world.model.requests).toEqual([]);
    await world.client.startAgent({ run: RUN, trial, lease: prepared.lease });
    const end = await ended(trial);
    expect(end).toMatchObject({ termination: TerminationReason.COMPLETED, exitCode: 0, patchEntries: 1 });

    const [request] = world.model.requests;
    expect(request).toMatchObject({
      authorization: `Bearer secret-of-${trial}`,
      body: { token: `secret-of-${trial}`, instruction: "Make add return the sum.\n", hasTests: false },
    });
    if (backend === "runc")
      expect(request!.body.variables).toEqual([
        "HOME",
        "INSTRUCTION",
        "LANG",
        "MODEL_URL",
        "PATH",
        "TMPDIR",
        "TOKEN",
      ]);

    const { stages, proof } = await report(trial, "ended");
    const agent = stages.find(({ stage }) => stage === Stage.AGENT)!;
    expect(agent.modelMs).toBeGreaterThan(0);
    expect(agent.modelMs).toBeLessThanOrEqual(agent.wallMs);
    expect(stages.map(({ stage }) => Stage[stage]).sort()).toEqual([
      "AGENT",
      "CLEANUP",
      "QUEUE",
      "SETUP",
      "WARM",
    ]);
    expect(proof?.seal).toBeDefined();
    if (backend === "runc") {
      expect(agent.cpuMs).toBeGreaterThan(0);
      expect(agent.throttledMs).toBeGreaterThanOrEqual(0);
      expect(proof).toMatchObject({ reachable: "model", network: { sha256: expect.any(String) }, notes: [] });
    } else {
      expect(proof).toMatchObject({ reachable: "whatever this host reaches" });
      expect(proof?.network).toBeUndefined();
    }

    const patch = await decodePatch(inlineOf(end.patch));
    expect(patch.entries.map((entry) => [entry.kind, entry.path])).toEqual([["file", "src/add.cjs"]]);
    const graded = await runOnce({ patch: end.patch! });
    expect(graded).toMatchObject({ failureCode: "", exitCode: 0 });
    expect(Buffer.from(graded.stdout).toString()).toBe(
      '{"nonce":"nonce-1","name":"adds","status":"passed","ms":0}\n',
    );
    await expect.poll(queued).toBe(0);
  });

  test("without a patch the tests fail, with the solution they pass", async () => {
    const status: ManagerWorld["grade"] = (request) => world.grade(request);
    expect(await status({})).toBe("failed");
    expect(await status({ withSolution: true })).toBe("passed");
  });

  test("how a run ends is told apart", async () => {
    const script = (code: string, timeoutMs = 20_000) => runOnce({ argv: ["node", "-e", code], timeoutMs });
    expect(await script("process.exit(7)")).toMatchObject({ failureCode: "", exitCode: 7 });
    expect(await script("for(;;);", 1000)).toMatchObject({ failureCode: "", timedOut: true });
    if (backend === "runc")
      expect(await script("for(const a=[];;)a.push(Buffer.alloc(4e6,1))")).toMatchObject({
        outOfMemory: true,
      });
    expect(await runOnce({ argv: ["no-such-program"] })).toMatchObject({
      failureCode: "MORTISE_SANDBOX_SETUP",
    });
  });

  test("a damaged patch, an unknown task and a wrong digest are refused by name", async () => {
    const damaged = {
      sha256: "00",
      size: 1n,
      place: { case: "inline", value: Buffer.from("x") },
    } as unknown as Content;
    await expect(runOnce({ patch: damaged })).rejects.toMatchObject({ code: "MORTISE_SANDBOX_PATCH" });
    await expect(runOnce({ task: { ...TASK, id: "none" } as never })).rejects.toMatchObject({
      code: "MORTISE_TASK_UNKNOWN",
    });
    await expect(runOnce({ task: { ...TASK, digest: "0".repeat(64) } as never })).rejects.toMatchObject({
      code: "MORTISE_TASK_DIGEST",
    });
  });

  test("a setup that cannot work is a failure with its code, and the work is done", async () => {
    for (const harness of ["unknown", "constructor", "__proto__"]) {
      const trial = await launch({ harness });
      expect((await report(trial, "failed")).fact.value).toMatchObject({
        termination: TerminationReason.SETUP_FAILED,
        code: "MORTISE_HARNESS_UNKNOWN",
      });
    }
    await expect.poll(queued).toBe(0);
  });

  test("exit codes, timeouts and a proxy that is gone have their reasons", async () => {
    const reasonOf = async (reply: object, changes: Record<string, unknown> = {}) => {
      world.model.reply = reply;
      return (await ended((await started(changes)).trial)).termination;
    };
    expect(await reasonOf({ exit: 1 })).toBe(TerminationReason.AGENT_CRASH);
    expect(await reasonOf({ exit: 6 })).toBe(TerminationReason.TURN_LIMIT);
    expect(await reasonOf({ hang: true }, { agentTimeoutMs: 600 })).toBe(TerminationReason.AGENT_TIMEOUT);
    expect(await reasonOf({}, { modelAddress: await closedAddress() })).toBe(TerminationReason.PROXY_FAILURE);
  });

  test("a cancelled trial ends as cancelled, warm or running", async () => {
    const warm = await launch();
    await report(warm, "prepared");
    expect(await world.client.cancelTrial({ run: RUN, trial: warm, reason: "test" })).toMatchObject({
      cancelled: true,
    });
    expect((await ended(warm)).termination).toBe(TerminationReason.CANCELLED);
    world.model.reply = { hang: true };
    const { trial } = await started();
    await expect.poll(() => world.model.requests.length).toBe(1);
    await world.client.cancelTrial({ run: RUN, trial, reason: "test" });
    expect((await ended(trial)).termination).toBe(TerminationReason.CANCELLED);
  });

  test("no slot in time is a lost sandbox; a wrong lease is unknown; a late repeat is answered", async () => {
    const late = await launch({ warmTimeoutMs: 50 });
    expect((await report(late, "failed")).fact.value).toMatchObject({
      termination: TerminationReason.SANDBOX_LOST,
    });
    const { trial, lease } = await started();
    await expect(world.client.startAgent({ run: RUN, trial: "none", lease: "none" })).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_UNKNOWN_LEASE",
    });
    await ended(trial);
    expect(await world.client.startAgent({ run: RUN, trial, lease })).toMatchObject({ started: true });
  });

  test("a launch delivered again after its end changes nothing", async () => {
    const { trial } = await started();
    await ended(trial);
    await launch({ trial });
    await expect.poll(queued).toBe(0);
    expect(world.watched.filter((candidate) => candidate.trial === trial)).toHaveLength(2);
  });

  test("after SIGKILL the next process reports the running trial lost, once, and goes on", async () => {
    world.model.reply = { hang: true };
    const { trial } = await started();
    await expect.poll(() => world.model.requests.length).toBe(1);
    await world.killManager();
    await world.startManager();
    expect((await report(trial, "failed")).fact.value).toMatchObject({
      termination: TerminationReason.SANDBOX_LOST,
      code: "MORTISE_SANDBOX_LOST",
    });
    // Delivered again, as the queue does when the acknowledgement wait is over.
    await launch({ trial });
    world.model.reply = {};
    expect((await ended((await started()).trial)).termination).toBe(TerminationReason.COMPLETED);
    expect(world.watched.filter((candidate) => candidate.trial === trial)).toHaveLength(2);
  }, 180_000);

  test("SIGTERM ends what runs as lost, exits with 0 and leaves nothing; no secret was logged", async () => {
    world.model.reply = { hang: true };
    const { trial } = await started();
    await expect.poll(() => world.model.requests.length).toBe(1);
    world.client.close();
    expect(await world.manager.stop()).toBe(0);
    expect((await report(trial, "failed")).fact.value).toMatchObject({
      termination: TerminationReason.SANDBOX_LOST,
    });
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(directory);
    expect(world.manager.output).not.toContain("secret-of-");
    expect(world.manager.output).toContain('"event":"trial.ended"');
  }, 180_000);
});
