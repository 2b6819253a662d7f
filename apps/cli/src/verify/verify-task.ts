/**
 * Owns verifying changes of one's own on this machine: a diff and a task to a verdict, and what is kept of it. The
 * verification is the verifier's.
 */
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { loadTask, PatchSyntaxError, type Task, taskDigest } from "@mortise/tasks";
import {
  type AskOnce,
  type Change,
  encodeEvidence,
  planVerification,
  readableLog,
  type VerificationWish,
  type Verified,
  verify,
} from "@mortise/verifier";

/** With a task's name of 128 characters it is still the name of a file. */
const MAX_MODEL_LENGTH = 100;
/** How records of the sandbox-manager name these runs. */
const RUN = "verify";

export interface Wanted {
  readonly directory: string;
  /** A unified diff; empty: the task as it is. */
  readonly patch: string;
  /** Of the prediction; the task's own id without one. */
  readonly instance: string;
  readonly model: string;
  /** Where evidence goes; nothing is kept without it. */
  readonly out: string | undefined;
}

/** One line of the result. */
export interface VerifyVerdict {
  readonly instance: string;
  readonly task: string;
  readonly model: string;
  /** `resolved`, `unresolved`, `invalid-infra`, `invalid-task`, `invalid-tamper`. */
  readonly verdict: string;
  readonly reason: string;
  readonly conclusive: boolean;
  readonly grader: string;
  readonly passed: number;
  readonly tests: number;
  readonly failed: readonly string[];
  readonly findings: readonly { readonly subject: string; readonly detail: string }[];
  readonly stripped: readonly { readonly path: string; readonly reason: string }[];
  /** How the diff was applied: `apply`, `3way`, `reject`, `fuzz`; absent where none was. */
  readonly applied?: string;
  readonly channel: string;
  readonly alteredTests: number;
  /** Milliseconds. */
  readonly wallMs: number;
  /** Folder with evidence.gz, log.txt and verdict.json. */
  readonly evidence?: string;
}

export async function verifyOne(wanted: Wanted, ask: AskOnce, signal: AbortSignal): Promise<VerifyVerdict> {
  const task = loadTask(wanted.directory);
  const change: Change = wanted.patch === "" ? { kind: "none" } : { kind: "diff", text: wanted.patch };
  const wish: VerificationWish = {
    run: RUN,
    trial: `verify-${task.id}`,
    ref: { id: task.id, digest: taskDigest(task) },
    change,
    timeoutMs: task.verifier.timeoutSec * 1000,
  };
  const start = performance.now();
  const plan = planned(task, wish);
  if (typeof plan === "string") return unread(wanted, plan);
  const verified = await verify(task, wish, plan, ask, signal);
  const verdict = verdictOf(wanted, verified, Math.round(performance.now() - start));
  const whole = {
    ...verdict,
    channel: plan.facts.runner ?? "none",
    alteredTests: verified.record.counter?.tests.length ?? 0,
  };
  return wanted.out === undefined ? whole : kept(whole, verified, wanted.out);
}

/** The plan, or why the patch is no diff: a proposal like any other, and none that solves anything. */
function planned(task: Task, wish: VerificationWish) {
  try {
    return planVerification(task, wish);
  } catch (error) {
    if (error instanceof PatchSyntaxError) return `the change is no unified diff: ${error.message}`;
    throw error;
  }
}

function unread({ instance, model, directory }: Wanted, reason: string): VerifyVerdict {
  const nothing = { passed: 0, tests: 0, failed: [], findings: [], stripped: [], alteredTests: 0, wallMs: 0 };
  const verdict = { verdict: "unresolved", reason, conclusive: false, grader: "none", channel: "none" };
  return { instance, task: basename(directory), model, ...verdict, ...nothing };
}

function verdictOf(
  { instance, model, directory }: Wanted,
  { record, judged }: Verified,
  wallMs: number,
): Omit<VerifyVerdict, "channel" | "alteredTests"> {
  const applied = record.diffs.find(({ name }) => name === "change")?.rung;
  return {
    instance,
    task: basename(directory),
    model,
    verdict: judged.outcome,
    reason: judged.reason,
    conclusive: judged.conclusive,
    grader: judged.grader,
    passed: judged.tests.filter(({ status }) => status === "passed").length,
    tests: judged.tests.length,
    failed: judged.tests.filter(({ status }) => status !== "passed").map(({ name }) => name),
    findings: judged.findings,
    stripped: record.stripped,
    ...(applied === undefined || applied === "" ? {} : { applied }),
    wallMs,
  };
}

function kept(verdict: VerifyVerdict, { record }: Verified, out: string): VerifyVerdict {
  const evidence = join(out, [verdict.task, folderOf(verdict.model)].filter((part) => part !== "").join("."));
  mkdirSync(evidence, { recursive: true });
  writeFileSync(join(evidence, "evidence.gz"), encodeEvidence(record));
  writeFileSync(join(evidence, "log.txt"), readableLog(record));
  const whole = { ...verdict, evidence };
  writeFileSync(join(evidence, "verdict.json"), `${JSON.stringify({ schema: 1, ...whole }, null, 2)}\n`);
  return whole;
}

/** The model's name where it can be one of a folder, else what remains of it and digits that keep it apart. */
function folderOf(model: string): string {
  const name = model.replaceAll(/[^A-Za-z0-9_-]+/g, "-").slice(0, MAX_MODEL_LENGTH);
  if (name === model) return name;
  return `${name}-${createHash("sha256").update(model).digest("hex").slice(0, 8)}`;
}
