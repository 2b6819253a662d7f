/**
 * `mortise regrade` on a real nats-server: verdicts with evidence as a verifier keeps it, groups and a step made of them.
 * Uses dist.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import {
  CONSUMERS,
  ExclusionReason,
  GroupDisposition,
  GroupRecordSchema,
  KV_BUCKETS,
  MetricsRecordSchema,
  OBJECT_BUCKETS,
  Outcome,
  RegradeSchema,
  STREAMS,
  subject,
  TerminationReason,
  TestStatus,
  TrialState,
  TrialTransitionSchema,
  VerdictSchema,
} from "@mortise/contracts";
import { type Bus, connectBus, createLog, ensureTopology } from "@mortise/kernel";
import { demoFamily, loadTask, taskDigest, writeDemoTasks } from "@mortise/tasks";
import { type NatsFixture, startNats } from "@mortise/testkit";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

/** Each call is a process of its own. */
vi.setConfig({ testTimeout: 120_000 });

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const ARCHIVER = fileURLToPath(new URL("../../../services/archiver/dist/main.js", import.meta.url));
const RUN = "r1";
const NONCE = "0123456789abcdef";
const base = mkdtempSync(join(tmpdir(), "mortise-cli-regrade-"));
const tasks = join(base, "tasks");
const [entry] = writeDemoTasks(tasks, demoFamily().slice(0, 1));
const task = loadTask(join(tasks, entry!.id));
const ref = { id: task.id, digest: taskDigest(task) };
const names = [...task.tests.expected!.failToPass, ...task.tests.expected!.passToPass];

let nats: NatsFixture;
let bus: Bus;

beforeAll(async () => {
  nats = await startNats({ withUsers: true });
  const identity = join(base, "identity");
  mkdirSync(identity);
  for (const user of ["admin", "observer"] as const)
    writeFileSync(join(identity, `${user}.json`), JSON.stringify(nats.identity(user)), { mode: 0o600 });
  writeFileSync(
    join(base, "site.toml"),
    `nats.url = "${nats.url}"\nidentity.directory = "${identity}"\nstate.directory = "${join(base, "state")}"\ntasks.directory = "${tasks}"\narchiver.rowsPerFile = 1\n`,
  );
  const { user, password } = nats.identity("admin");
  const log = createLog({ service: "test", level: "error" });
  bus = await connectBus({ url: nats.url, user, password, name: "test", log });
  await ensureTopology(bus, {
    streams: STREAMS,
    consumers: CONSUMERS,
    kv: KV_BUCKETS,
    objects: OBJECT_BUCKETS,
  });
  await recordRun();
}, 60_000);
afterAll(async () => {
  await bus?.close();
  await nats?.stop();
  rmSync(base, { recursive: true, force: true });
});

/** Evidence of a run in which these tests passed and the others failed. */
function evidenceOf(passed: readonly string[], digest = ref.digest) {
  const results = [
    ...names.map((name) => ({ nonce: NONCE, name, status: passed.includes(name) ? "passed" : "failed" })),
    { nonce: NONCE, end: true, tests: names.length },
  ];
  const stdout = results.map((record) => `${JSON.stringify(record)}\n`).join("");
  const step = {
    ...{
      name: "tests",
      exitCode: 0,
      signal: "",
      timedOut: false,
      outOfMemory: false,
      outputTruncated: false,
    },
    ...{ wallMs: 12, stdout: Buffer.from(stdout).toString("base64"), stderr: "", files: [] },
  };
  const record = {
    ...{ format: "mortise-evidence/1", task: { id: ref.id, digest }, kind: "results", nonce: NONCE },
    ...{ hasChannel: false, hasChange: true, steps: [step], stripped: [], diffs: [] },
  };
  const value = new Uint8Array(gzipSync(JSON.stringify(record)));
  const sha256 = createHash("sha256").update(value).digest("hex");
  return { place: { case: "inline" as const, value }, sha256, size: BigInt(value.length) };
}

interface Told {
  readonly outcome: Outcome;
  readonly reward?: number;
  readonly grader?: string;
  readonly evidence?: ReturnType<typeof evidenceOf>;
  readonly tests?: readonly { readonly name: string; readonly status: TestStatus }[];
}

const all = (status: TestStatus) => names.map((name) => ({ name, status }));

const TRIALS: Readonly<Record<string, Told>> = {
  /** An old parser lost its results. */
  lost: { outcome: Outcome.UNRESOLVED, reward: 0, grader: "json-lines/0", evidence: evidenceOf(names) },
  solved: {
    ...{ outcome: Outcome.RESOLVED, reward: 1, grader: "json-lines/1" },
    ...{ evidence: evidenceOf(names), tests: all(TestStatus.PASSED) },
  },
  failed: {
    ...{ outcome: Outcome.UNRESOLVED, reward: 0, grader: "json-lines/1" },
    ...{ evidence: evidenceOf([]), tests: all(TestStatus.FAILED) },
  },
  before: { outcome: Outcome.UNRESOLVED, reward: 0, grader: "json-lines/1" },
  moved: {
    outcome: Outcome.RESOLVED,
    reward: 1,
    grader: "json-lines/1",
    evidence: evidenceOf(names, "0".repeat(64)),
  },
  broken: { outcome: Outcome.INVALID_INFRA },
};
/** A task whose only trial had no sandbox. */
const UNTOLD = "untold";

async function recordRun(): Promise<void> {
  for (const [trial, told] of Object.entries(TRIALS)) {
    const { outcome, reward } = told;
    await bus.publish({
      subject: subject.reward(RUN, trial),
      schema: VerdictSchema,
      message: { run: RUN, trial, ...told, tests: [...(told.tests ?? [])] },
      dedupeId: `${RUN}/${trial}/verdict`,
    });
    await bus.publish({
      subject: subject.trialState(RUN, trial),
      schema: TrialTransitionSchema,
      message: {
        ...{ run: RUN, trial, group: "g1", task: ref, state: TrialState.CLOSED, outcome },
        ...{ termination: TerminationReason.COMPLETED },
        ...(reward === undefined ? {} : { reward }),
      },
      dedupeId: `${RUN}/${trial}/closed`,
    });
  }
  await bus.publish({
    subject: subject.trialState(RUN, "never"),
    schema: TrialTransitionSchema,
    message: {
      ...{ run: RUN, trial: "never", task: { id: UNTOLD }, state: TrialState.CLOSED },
      termination: TerminationReason.SETUP_FAILED,
    },
    dedupeId: `${RUN}/never/closed`,
  });
  const members = ["lost", "solved", "failed"].map((trial) => {
    const { outcome, reward } = TRIALS[trial]!;
    return { trial, outcome, ...(reward === undefined ? {} : { reward }) };
  });
  await bus.publish({
    subject: subject.group(RUN, "g1"),
    schema: GroupRecordSchema,
    message: { run: RUN, group: "g1", task: ref, disposition: GroupDisposition.ADMITTED, members },
    dedupeId: `${RUN}/g1`,
  });
  await bus.publish({
    subject: subject.group(RUN, "g2"),
    schema: GroupRecordSchema,
    message: {
      ...{ run: RUN, group: "g2", task: ref, disposition: GroupDisposition.DROPPED },
      dropReason: ExclusionReason.ZERO_VARIANCE,
      members: [],
    },
    dedupeId: `${RUN}/g2`,
  });
  await bus.publish({
    subject: subject.step(RUN, 1),
    schema: MetricsRecordSchema,
    message: {
      record: {
        case: "step",
        value: { run: RUN, step: 1n, groups: ["g1"], trials: members.map(({ trial }) => ({ trial })) },
      },
    },
    dedupeId: `${RUN}/step/1`,
  });
}

/** A real archiver, from its start until it has everything. */
async function archive(): Promise<void> {
  writeFileSync(join(base, "identity/archiver.json"), JSON.stringify(nats.identity("archiver")));
  const child = spawn(process.execPath, [ARCHIVER, "--site", join(base, "site.toml")], { stdio: "ignore" });
  const exit = once(child, "exit");
  try {
    for (const stream of ["REWARDS", "TRIALS", "GROUPS", "METRICS"]) {
      const last = (await bus.manager.streams.info(stream)).state.last_seq;
      await expect.poll(() => positionOf(stream), { timeout: 60_000 }).toBe(last);
    }
  } finally {
    child.kill("SIGTERM");
    await exit;
  }
}

/** Up to where a stream is archived; undefined before anything is. */
function positionOf(stream: string): number | undefined {
  const file = join(base, "state/archive/position.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).streams[stream]?.sequence : undefined;
}

async function mortise(...args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, MORTISE_SITE: join(base, "site.toml") },
  });
  child.stdin.end();
  const exit = once(child, "exit");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { status: (await exit)[0] as number, stdout, stderr };
}
const json = async (...args: readonly string[]) => {
  const { stdout, stderr } = await mortise(...args, "--json");
  expect(stdout, stderr).not.toBe("");
  return JSON.parse(stdout);
};

test("evidence is judged again: what changes, by which graders, and what it means for a trained group", async () => {
  const result = await json("regrade", RUN);
  expect(result).toMatchObject({
    source: "bus",
    verdicts: 6,
    regraded: 3,
    changed: 1,
    before: { resolved: 1, unresolved: 2 },
    after: { resolved: 2, unresolved: 1 },
    graders: { "json-lines/0 -> json-lines/1": 1, "json-lines/1": 2 },
  });
  expect(result.changes).toMatchObject([
    {
      trial: "lost",
      task: ref.id,
      before: { outcome: "unresolved", reward: 0, grader: "json-lines/0" },
      after: { outcome: "resolved", reward: 1, grader: "json-lines/1" },
    },
  ]);
  expect(result.skipped.map(({ trial }: { trial: string }) => trial).sort()).toEqual([
    "before",
    "broken",
    "moved",
  ]);
  expect(result.consequences).toMatchObject([
    { subject: "g1", kind: "trained", step: 1, wouldBe: "admitted" },
  ]);
  expect(result.consequences[0].maxAdvantageChange).toBeCloseTo(2 / 3);
});

test("for people: what changed, totals, consequences, and how it is recorded", async () => {
  const { stdout } = await mortise("regrade", RUN);
  expect(stdout).toContain(`lost  ${ref.id}  unresolved -> resolved  (json-lines/0 -> json-lines/1:`);
  expect(stdout).toContain("3 of 6 verdicts of r1 graded again (bus): 1 changed, 0 the same");
  expect(stdout).toContain("group g1 was trained in step 1 by its earlier rewards, and stays so");
  expect(stdout).toContain("--apply --why <text>");
});

test("without --apply nothing is written; --apply says why", async () => {
  expect(await bus.last("REWARDS", subject.regrade(RUN, "lost"), RegradeSchema)).toBeUndefined();
  const { status, stderr } = await mortise("regrade", RUN, "--apply");
  expect(status).toBe(2);
  expect(stderr).toContain("--why");
});

test("--apply records it beside the verdict, once, with who and why; status counts what stands", async () => {
  const flags = ["--apply", "--why", "parser 1 reads all results", "--author", "somebody"];
  expect(await json("regrade", RUN, ...flags)).toMatchObject({ written: 1 });
  expect(await json("regrade", RUN, ...flags)).toMatchObject({ changed: 0, written: 0 });
  const regrade = await bus.last("REWARDS", subject.regrade(RUN, "lost"), RegradeSchema);
  expect(regrade?.message).toMatchObject({
    earlierOutcome: Outcome.UNRESOLVED,
    earlierReward: 0,
    earlierGrader: "json-lines/0",
    evidenceSha256: TRIALS.lost!.evidence!.sha256,
    judged: { outcome: Outcome.RESOLVED, reward: 1, grader: "json-lines/1" },
    author: "somebody",
    why: "parser 1 reads all results",
  });
  const verdict = await bus.last("REWARDS", subject.reward(RUN, "lost"), VerdictSchema);
  expect(verdict?.message).toMatchObject({ outcome: Outcome.UNRESOLVED, grader: "json-lines/0" });
  expect(verdict?.sequence).toBe(Number(regrade?.message.verdictSequence));
  expect(await json("status", RUN)).toMatchObject({
    verdicts: { resolved: 3, unresolved: 2, "invalid(infra)": 1 },
    regraded: 1,
  });
});

test("trials whose machinery failed are purged from an index of trials", async () => {
  const file = join(base, "trials.jsonl");
  await mortise("regrade", RUN, "--trials", file);
  const rows = readFileSync(file, "utf8").trim().split("\n");
  const trials = rows.map((row) => JSON.parse(row) as { trial: string; task: string; reward: number });
  expect(trials.map(({ trial }) => trial).sort()).toEqual(["before", "failed", "lost", "moved", "solved"]);
  expect(trials.find(({ trial }) => trial === "lost")).toMatchObject({ task: ref.id, reward: 1 });
});

test("tasks a run says nothing of are left out of an index", async () => {
  const index = join(base, "index.jsonl");
  const row = (id: string) =>
    JSON.stringify({
      prompt: [{ role: "user", content: "Repair it." }],
      reward_model: { style: "mortise", ground_truth: id },
      extra_info: { task: id, digest: "0".repeat(64), split: "train" },
    });
  writeFileSync(index, `${row(ref.id)}\n${row(UNTOLD)}\n`);
  const result = await json("tasks", "index", index, "--exclude-infra", RUN);
  expect(result).toMatchObject({ tasks: 1 });
  expect(result.funnel.at(-1)).toMatchObject({ rule: `infra-failed in ${RUN}`, dropped: 1, left: 1 });
});

test("a run whose bus has ended is graded again from its archive, and not added to", async () => {
  await archive();
  const directory = join(base, "state/archive");
  const result = await json("regrade", RUN, "--archive", directory);
  // What was recorded before stands in the archive too.
  expect(result).toMatchObject({ source: "archive", verdicts: 6, regraded: 3, changed: 0 });
  const refused = await mortise("regrade", RUN, "--archive", directory, "--apply", "--why", "because");
  expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining("(--apply)") });
  expect(await json("integrity", RUN, "--archive", directory)).toMatchObject({
    trials: 7,
    verdicts: { resolved: 3, unresolved: 2, "invalid(infra)": 1 },
    protection: { withEvidence: 4 },
  });
});

test("a run nobody knows is refused by name", async () => {
  const { status, stderr } = await mortise("regrade", "unknown");
  expect(status).toBe(2);
  expect(stderr).toContain("MORTISE_OPERATOR_RUN_UNKNOWN (runId)");
});
