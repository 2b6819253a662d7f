/**
 * A real verifier process on a real NATS server. The sandbox-manager is a fake that speaks the real protocol:
 * it answers each run with what the test scripts, given the nonce the verifier sent.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  CONSUMERS,
  KV_BUCKETS,
  OBJECT_BUCKETS,
  Outcome,
  type RunOnceRequest,
  type RunOnceResponse,
  type RunOnceResponseSchema,
  type RunStepResultSchema,
  SandboxService,
  STREAMS,
  subject,
  TestStatus,
  type Verdict,
  VerdictSchema,
  VerifyWorkSchema,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology, implement, RpcServer } from "@mortise/kernel";
import { demoFamily, loadTask, taskDigest, writeDemoTasks } from "@mortise/tasks";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decodeEvidence, judgeRun } from "../src/index.js";
import { VerifierProcess } from "./verifier-process.js";

const RUN = "r1";
type Run = Exclude<MessageInitShape<typeof RunOnceResponseSchema>, RunOnceResponse>;
/** How the one step ended, or how the sandbox failed. */
type Answer = (nonce: string) => Ending | Promise<Ending>;
type Ending = Omit<MessageInitShape<typeof RunStepResultSchema>, "$typeName"> &
  Pick<Run, "failureCode" | "failureReason">;
/** Above the 30 s after which the work of a dead verifier is delivered again. */
const VERDICT_TIMEOUT_MS = 60_000;

const directory = mkdtempSync(path.join(tmpdir(), "mortise-verifier-"));
const tasks = path.join(directory, "tasks");
const [entry] = writeDemoTasks(tasks, demoFamily().slice(0, 1));
const task = loadTask(path.join(tasks, entry!.id));
const names = [...task.tests.expected!.failToPass, ...task.tests.expected!.passToPass];
const ref = { id: task.id, digest: taskDigest(task) };

let nats: NatsFixture;
let bus: Bus;
let manager: RpcServer;
let verifier: VerifierProcess;
const verdicts = new Map<string, Verdict[]>();
const asked: RunOnceRequest[] = [];
let answer: Answer;

beforeAll(async () => {
  nats = await startNats({ withUsers: true });
  const { user, password, bearer } = nats.identity("admin");
  const log = createLog({ service: "test", level: "error" });
  bus = await connectBus({ url: nats.url, user, password, name: "test", log, onFault: console.error });
  await ensureTopology(bus, {
    streams: STREAMS,
    consumers: CONSUMERS,
    kv: KV_BUCKETS,
    objects: OBJECT_BUCKETS,
  });
  manager = await RpcServer.start({ host: "127.0.0.1", port: 0, bearer, bindings: [fakeManager()] });
  await announce();
  await bus.follow({
    stream: "REWARDS",
    filters: [`mortise.v1.reward.${RUN}.*`],
    from: "first",
    schema: VerdictSchema,
    onMessage: (verdict) =>
      void verdicts.set(verdict.trial, [...(verdicts.get(verdict.trial) ?? []), verdict]),
  });
  verifier = new VerifierProcess(nats, directory, tasks);
  await verifier.start();
});

afterAll(async () => {
  await verifier?.end("SIGKILL");
  await manager?.stop();
  await bus?.close();
  await nats?.stop();
  rmSync(directory, { recursive: true, force: true });
});

function fakeManager() {
  const refuse = () => {
    throw new Error("not asked of this fake");
  };
  return implement(SandboxService, {
    startAgent: refuse,
    cancelTrial: refuse,
    getSandboxStatus: refuse,
    runOnce: async (request) => {
      asked.push(request);
      const [step] = request.steps;
      const given = await answer(new TextDecoder().decode(step?.stdin).trim());
      const { failureCode = "", failureReason = "", ...ending } = given;
      const failed = failureCode !== "";
      return { failureCode, failureReason, steps: failed ? [] : [{ name: step?.name ?? "", ...ending }] };
    },
  });
}

async function announce(): Promise<void> {
  const presence = {
    service: "sandbox-manager",
    instance: "fake",
    rpcAddress: `127.0.0.1:${manager.port}`,
    httpAddress: "",
    pid: process.pid,
    startedAt: 0,
    facts: {},
  };
  const kv = await bus.kv("presence");
  await kv.put("sandbox-manager.fake", new TextEncoder().encode(JSON.stringify(presence)));
}

async function grade(trial: string, given: Answer, changes: object = {}): Promise<Verdict> {
  answer = given;
  await bus.publish({
    subject: subject.verify(RUN, trial),
    schema: VerifyWorkSchema,
    message: { run: RUN, trial, task: ref, timeoutMs: 5_000, ...changes },
    dedupeId: `${RUN}/${trial}/verify`,
  });
  const arrived = async () => {
    await announce();
    return verdicts.get(trial)?.length ?? 0;
  };
  await expect.poll(arrived, { timeout: VERDICT_TIMEOUT_MS }).toBe(1);
  return verdicts.get(trial)![0]!;
}

const results = (nonce: string, status: (name: string) => string) =>
  [
    ...names.map((name) => ({ nonce, name, status: status(name), ms: 1 })),
    { nonce, end: true, tests: names.length },
  ]
    .map((record) => `${JSON.stringify(record)}\n`)
    .join("");
const bytes = (text: string) => new TextEncoder().encode(text);

test("every expected test passed: resolved, reward 1, the log kept", async () => {
  const verdict = await grade("good", (nonce) => ({ stdout: bytes(results(nonce, () => "passed")) }));
  expect(verdict).toMatchObject({ outcome: Outcome.RESOLVED, reward: 1, grader: "json-lines/1" });
  expect(verdict.tests.map(({ status }) => status)).toEqual(names.map(() => TestStatus.PASSED));
  expect(verdict.log?.size).toBeGreaterThan(0n);
  expect(asked.at(-1)).toMatchObject({ withTests: true, withSolution: false });
  expect(asked.at(-1)!.steps).toMatchObject([{ argv: ["/bin/sh", "/tests/test.sh"], timeoutMs: 5_000 }]);
});

test("a run's limits and multipliers reach the sandbox, and its timeout is the task's own times its multiplier", async () => {
  const passing: Answer = (nonce) => ({ stdout: bytes(results(nonce, () => "passed")) });
  const limits = { cpus: 3, memoryBytes: 1n << 30n };
  const overrides = { cpusMultiplier: 2, memoryMultiplier: 1.5, verifyTimeoutMultiplier: 3 };
  await grade("roomy", passing, { limits, overrides, timeoutMs: 10_000_000 });
  expect(asked.at(-1)).toMatchObject({ limits, overrides });
  const ownMs = task.verifier.timeoutSec * 1000;
  expect(asked.at(-1)!.steps).toMatchObject([{ timeoutMs: 3 * ownMs }]);
  await grade("plain", passing, { timeoutMs: 0 });
  expect(asked.at(-1)!.steps).toMatchObject([{ timeoutMs: ownMs }]);
});

test("a failing test: unresolved, reward 0, and the share that passed", async () => {
  const failing = names[0];
  const verdict = await grade("bad", (nonce) => ({
    stdout: bytes(results(nonce, (name) => (name === failing ? "failed" : "passed"))),
  }));
  expect(verdict).toMatchObject({ outcome: Outcome.UNRESOLVED, reward: 0 });
  expect(verdict.components[0]?.value).toBeCloseTo((names.length - 1) / names.length);
});

test("each run has its own nonce, and results with an old one are tampering", async () => {
  let earlier = "";
  await grade("first", (nonce) => {
    earlier = nonce;
    return { stdout: bytes(results(nonce, () => "passed")) };
  });
  const verdict = await grade("forged", () => ({ stdout: bytes(results(earlier, () => "passed")) }));
  expect(earlier).toMatch(/^[0-9a-f]{32}$/);
  expect(verdict).toMatchObject({ outcome: Outcome.INVALID_TAMPER, conclusive: true });
  expect(verdict.reward).toBeUndefined();
});

test("a sandbox that failed is infrastructure, never reward 0", async () => {
  const verdict = await grade("infra", () => ({
    failureCode: "MORTISE_SANDBOX_SETUP",
    failureReason: "no space for the overlay",
  }));
  expect(verdict.outcome).toBe(Outcome.INVALID_INFRA);
  expect(verdict.reward).toBeUndefined();
  expect(verdict.reason).toContain("no space for the overlay");
});

test("a task that is not the one referred to is invalid(task), and nothing is run", async () => {
  const runs = asked.length;
  const verdict = await grade("other", () => ({}), { task: { id: task.id, digest: "0".repeat(64) } });
  expect(verdict.outcome).toBe(Outcome.INVALID_TASK);
  expect(asked.length).toBe(runs);
});

test("the evidence alone gives the same judgement again", async () => {
  const verdict = await grade("kept", (nonce) => ({ stdout: bytes(results(nonce, () => "passed")) }));
  if (verdict.evidence?.place.case !== "inline") throw new Error("the evidence is not inline");
  const run = decodeEvidence(verdict.evidence.place.value);
  expect(run.task).toEqual(ref);
  expect(judgeRun(task, run)).toMatchObject({ outcome: "resolved", reward: 1, grader: verdict.grader });
});

test("a verifier killed while grading: its successor grades, one verdict", async () => {
  const { promise: isAsked, resolve: reach } = Promise.withResolvers<void>();
  let runs = 0;
  const work = grade("killed", async (nonce) => {
    runs += 1;
    // The first run never ends: its verifier dies over it.
    if (runs === 1) await new Promise<never>(() => reach());
    return { stdout: bytes(results(nonce, () => "passed")) };
  });
  await isAsked;
  await verifier.end("SIGKILL");
  await verifier.start();
  expect((await work).outcome).toBe(Outcome.RESOLVED);
  expect(runs).toBe(2);
  // Nothing is left in the queue, so no second verdict can come.
  expect(await verifier.end("SIGTERM")).toBe(0);
  expect(verdicts.get("killed")).toHaveLength(1);
}, 120_000);
