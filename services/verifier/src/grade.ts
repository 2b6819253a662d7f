/**
 * Owns one grading: the test run in a fresh sandbox, its results, the verdict message. Does not own the
 * rule from results to a verdict (packages/grading) or the sandbox (the sandbox-manager).
 *
 * The nonce is made here, goes to the test runner on standard input before any graded code is loaded, and
 * must come back with every result: what the graded code prints cannot pass for a result (DESIGN §7).
 */
import { randomBytes } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  MortiseError,
  Outcome,
  type RunOnceResponse,
  TestStatus,
  type Verdict,
  VerdictSchema,
  type VerifyWork,
} from "@mortise/contracts";
import { type Judgement, judge, parseReport, type TestVerdict, type VerdictOutcome } from "@mortise/grading";
import { fromUnknown } from "@mortise/kernel";
import type { Task } from "@mortise/tasks";
import type { LogStore } from "./log-store.js";
import type { SandboxManagers } from "./sandbox-managers.js";
import type { TaskShelf } from "./task-shelf.js";

export interface GradingTools {
  readonly managers: SandboxManagers;
  readonly tasks: TaskShelf;
  readonly logs: LogStore;
  readonly defaultTimeoutMs: number;
  /** Aborted when the work is to be given back. */
  readonly signal: AbortSignal;
}

/** Above the time limit of the test run: what the sandbox itself may take. */
const SANDBOX_ALLOWANCE_MS = 30_000;

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

type VerdictFields = MessageInitShape<typeof VerdictSchema>;

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
  try {
    if (work.task === undefined)
      throw new MortiseError({ code: "MORTISE_TASK_UNKNOWN", message: "VerifyWork.task is absent" });
    task = tools.tasks.get(work.task);
  } catch (error) {
    return { outcome: Outcome.INVALID_TASK, reason: fromUnknown(error, "MORTISE_TASK_INVALID").message };
  }
  const expected = task.tests.expected;
  if (expected === undefined)
    return {
      outcome: Outcome.INVALID_TASK,
      reason: "tests/expected.json is absent: results cannot be named",
    };
  if (expected.format === "log")
    return {
      outcome: Outcome.INVALID_TASK,
      reason: "its tests print a log, and this verifier grades results only",
    };
  const nonce = randomBytes(16).toString("hex");
  const ran = await runTests(work, task, nonce, tools);
  if (ran.failureCode !== "")
    return {
      outcome: Outcome.INVALID_INFRA,
      reason: `${ran.failureCode}: ${ran.failureReason}`,
      stages: ran.stages,
    };
  const report = parseReport(expected.format, new TextDecoder().decode(ran.stdout), nonce);
  const judgement = judge([...expected.failToPass, ...expected.passToPass], report, ran);
  return {
    ...verdictOf(judgement),
    grader: report.parser,
    stages: ran.stages,
    log: await tools.logs.keep(Buffer.concat([ran.stdout, ran.stderr])),
  };
}

async function runTests(
  work: VerifyWork,
  task: Task,
  nonce: string,
  tools: GradingTools,
): Promise<RunOnceResponse> {
  const timeoutMs = work.timeoutMs || task.verifier.timeoutSec * 1000 || tools.defaultTimeoutMs;
  return tools.managers.runOnce(
    {
      run: work.run,
      trial: work.trial,
      task: work.task!,
      ...(work.patch === undefined ? {} : { patch: work.patch }),
      argv: ["/bin/sh", "/tests/test.sh"],
      environment: task.verifier.env,
      withTests: true,
      timeoutMs,
      stdin: new TextEncoder().encode(`${nonce}\n`),
    },
    { deadlineMs: timeoutMs + SANDBOX_ALLOWANCE_MS, signal: tools.signal },
  );
}

function verdictOf(judgement: Judgement): VerdictFields {
  return {
    outcome: OUTCOMES[judgement.outcome],
    ...(judgement.reward === undefined ? {} : { reward: judgement.reward }),
    reason: judgement.reason,
    conclusive: judgement.conclusive,
    tests: judgement.tests.map((test) => ({
      name: test.name,
      status: STATUSES[test.status],
      durationMs: test.durationMs ?? 0,
    })),
    components: [{ name: "tests-passed-share", value: judgement.passedShare }],
  };
}
