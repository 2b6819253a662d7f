/**
 * Owns one grading: the verification a work item asks for, and the verdict message on it. Does not own the running of
 * it (verification.ts) or how a kind judges (results/, log/, reward/).
 *
 * The judgement is made of the run record alone, which is kept: the same record can be judged again (DESIGN §7).
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  MortiseError,
  Outcome,
  TestStatus,
  type Verdict,
  VerdictSchema,
  type VerifyWork,
} from "@mortise/contracts";
import type { TestVerdict, VerdictOutcome } from "@mortise/grading";
import { fromUnknown } from "@mortise/kernel";
import type { Task } from "@mortise/tasks";
import type { LogStore } from "./log-store.js";
import { readableLog } from "./readable-log.js";
import { encodeEvidence } from "./run/evidence.js";
import type { Judged } from "./run/judged.js";
import type { Plan } from "./run/plan.js";
import type { RunRecord } from "./run/run-record.js";
import type { SandboxManagers } from "./sandbox-managers.js";
import type { TaskShelf } from "./task-shelf.js";
import { type AskOnce, planVerification, type VerificationWish, verify } from "./verification.js";

export interface GradingTools {
  readonly managers: Pick<SandboxManagers, "runOnce">;
  readonly tasks: TaskShelf;
  readonly logs: LogStore;
  readonly defaultTimeoutMs: number;
  /** Aborted when the work is to be given back. */
  readonly signal: AbortSignal;
}

const OUTCOMES: Record<VerdictOutcome, Outcome> = {
  resolved: Outcome.RESOLVED,
  unresolved: Outcome.UNRESOLVED,
  "invalid-infra": Outcome.INVALID_INFRA,
  "invalid-task": Outcome.INVALID_TASK,
  "invalid-tamper": Outcome.INVALID_TAMPER,
};
const STATUSES: Record<TestVerdict, TestStatus> = {
  passed: TestStatus.PASSED,
  failed: TestStatus.FAILED,
  error: TestStatus.ERROR,
  skipped: TestStatus.SKIPPED,
  missing: TestStatus.MISSING,
};

type VerdictFields = Exclude<MessageInitShape<typeof VerdictSchema>, Verdict>;

/**
 * Grades one trial. A failure of the sandbox or of the task is a verdict too (invalid), so that the
 * scheduler always hears; only sandbox-managers that stay unreachable are thrown, to be tried again.
 * @throws MORTISE_TRANSPORT_UNAVAILABLE (retry)
 */
export async function gradeTrial(work: VerifyWork, tools: GradingTools): Promise<Verdict> {
  const { run, trial, evaluation } = work;
  const fields = await gradeFields(work, tools);
  return create(VerdictSchema, { run, trial, evaluation, ...fields });
}

async function gradeFields(work: VerifyWork, tools: GradingTools): Promise<VerdictFields> {
  let task: Task;
  let plan: Plan;
  let wish: VerificationWish;
  try {
    if (work.task === undefined)
      throw new MortiseError({ code: "MORTISE_TASK_UNKNOWN", message: "VerifyWork.task is absent" });
    task = tools.tasks.get(work.task);
    wish = {
      run: work.run,
      trial: work.trial,
      ref: work.task,
      change: work.patch === undefined ? { kind: "none" } : { kind: "patch", patch: work.patch },
      timeoutMs: testsTimeoutMs(work, task, tools.defaultTimeoutMs),
      prepareTimeoutMs: work.prepareTimeoutMs,
      limits: work.limits,
      overrides: work.overrides,
    };
    plan = planVerification(task, wish);
  } catch (error) {
    return { outcome: Outcome.INVALID_TASK, reason: fromUnknown(error, "MORTISE_TASK_INVALID").message };
  }
  const ask: AskOnce = (request, options) => tools.managers.runOnce(request, options);
  const { record, judged, stages } = await verify(task, wish, plan, ask, tools.signal);
  return { ...(await keep(record, tools.logs)), ...verdictFields(judged), stages: [...stages] };
}

/** Milliseconds: the task's own limit times the run's multiplier, and never more than the run allows. */
export function testsTimeoutMs(
  { timeoutMs, overrides }: Pick<VerifyWork, "timeoutMs" | "overrides">,
  { verifier }: Pick<Task, "verifier">,
  otherwiseMs: number,
): number {
  const ownMs = verifier.timeoutSec * 1000 * (overrides?.verifyTimeoutMultiplier || 1);
  return Math.round(Math.min(ownMs || otherwiseMs, timeoutMs || Number.POSITIVE_INFINITY));
}

async function keep(
  record: RunRecord,
  logs: LogStore,
): Promise<Pick<VerdictFields, "log" | "evidence" | "stripped">> {
  return {
    log: await logs.keepCompressed(new TextEncoder().encode(readableLog(record))),
    evidence: await logs.keep(encodeEvidence(record)),
    stripped: record.stripped.map(({ path, reason }) => ({ subject: path, detail: reason })),
  };
}

/** The part of a verdict that a judgement decides. */
export function verdictFields(judged: Judged): VerdictFields {
  return {
    outcome: OUTCOMES[judged.outcome],
    ...(judged.reward === undefined ? {} : { reward: judged.reward }),
    reason: judged.reason,
    conclusive: judged.conclusive,
    tests: judged.tests.map((test) => ({
      name: test.name,
      status: STATUSES[test.status],
      durationMs: test.durationMs ?? 0,
    })),
    components: judged.components.map(({ name, value }) => ({ name, value })),
    grader: judged.grader,
    findings: judged.findings.map(({ subject, detail }) => ({ subject, detail })),
  };
}
