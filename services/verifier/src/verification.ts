/**
 * Owns the running of one verification: its plan, the fresh sandboxes, the record, the judgement. The verifier's service
 * and the commands that verify on this machine run it alike. Does not find tasks, keep evidence or publish anything.
 *
 * V1  The altered tests are run, in a sandbox of their own, only where the true ones alone would be resolved.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type Content,
  isTaskFault,
  type RunOnceRequestSchema,
  type RunOnceResponse,
  type SandboxLimits,
  type SandboxOverrides,
  type StageTime,
  type TaskRef,
} from "@mortise/contracts";
import type { Task } from "@mortise/tasks";
import { type DiffChange, withDiff } from "./diff-change.js";
import { counterFor, judgeRun, planFor } from "./kinds.js";
import { invalid, type Judged } from "./run/judged.js";
import type { CounterPlan, Plan } from "./run/plan.js";
import { counterOf, type RunRecord, recordOf } from "./run/run-record.js";

/** What is graded: nothing, the task's own solution, a change as a sandbox-manager takes it, or a unified diff. */
export type Change =
  | { readonly kind: "none" }
  | { readonly kind: "solution" }
  | { readonly kind: "patch"; readonly patch: Content }
  | DiffChange;

export interface VerificationWish {
  readonly run: string;
  readonly trial: string;
  readonly ref: Pick<TaskRef, "id" | "digest">;
  readonly change: Change;
  /** Milliseconds, of the tests. */
  readonly timeoutMs: number;
  /** Milliseconds: what making a sandbox may take beside the tests. */
  readonly prepareTimeoutMs?: number;
  readonly limits?: SandboxLimits | undefined;
  readonly overrides?: SandboxOverrides | undefined;
}

/** Asks a sandbox-manager; rejects where none answers. */
export type AskOnce = (
  request: MessageInitShape<typeof RunOnceRequestSchema>,
  options: { readonly deadlineMs: number; readonly signal: AbortSignal },
) => Promise<RunOnceResponse>;

export interface Verified {
  /** Everything the judgement was made of (run/evidence.ts makes bytes of it). */
  readonly record: RunRecord;
  readonly judged: Judged;
  readonly stages: readonly StageTime[];
}

/** Above the time limits of the steps: what the sandbox itself may take. */
const SANDBOX_ALLOWANCE_MS = 30_000;
const NOT_JUDGED = "none";

/** Throws MORTISE_TASK_RECORD, MORTISE_TASK_INVALID or MORTISE_SANDBOX_PATCH for what cannot be planned. */
export function planVerification(task: Task, { ref, change, timeoutMs }: VerificationWish): Plan {
  const plan = planFor(task, { ref, hasChange: change.kind !== "none", timeoutMs });
  if (change.kind !== "diff") return plan;
  const { run, stripped } = withDiff(plan, change);
  return { ...run, stripped };
}

/** A sandbox that fails is a judgement too, invalid(infra) or invalid(task). Rejects with what `ask` rejects with. */
export async function verify(
  task: Task,
  wish: VerificationWish,
  plan: Plan,
  ask: AskOnce,
  signal: AbortSignal,
): Promise<Verified> {
  const answer = await askFor(task, wish, plan, ask, signal);
  const record = recordOf(plan, answer);
  if (answer.failureCode !== "") {
    const reason = `${answer.failureCode}: ${answer.failureReason}`;
    const fault = isTaskFault(answer.failureCode) ? "task" : "infra";
    return { record, judged: invalid(fault, reason, { grader: NOT_JUDGED }), stages: answer.stages };
  }
  const judged = judgeRun(task, record);
  const counter = judged.outcome === "resolved" ? counterFor(task, wish, record) : undefined; // V1
  if (counter === undefined) return { record, judged, stages: answer.stages };
  const { change } = wish;
  const run = change.kind === "diff" ? withDiff(counter, change).run : counter;
  const second = await askFor(task, wish, run, ask, signal);
  const whole = { ...record, counter: counterOf(counter, second) };
  return { record: whole, judged: judgeRun(task, whole), stages: [...answer.stages, ...second.stages] };
}

function askFor(
  task: Task,
  wish: VerificationWish,
  { steps, request }: Pick<Plan | CounterPlan, "steps" | "request">,
  ask: AskOnce,
  signal: AbortSignal,
): Promise<RunOnceResponse> {
  const { run, trial, ref, change, limits, overrides, prepareTimeoutMs = 0 } = wish;
  const timeoutMs = steps.reduce((sum, step) => sum + (step.timeoutMs ?? 0), 0);
  return ask(
    {
      run,
      trial,
      task: ref,
      ...(change.kind === "patch" ? { patch: change.patch } : {}),
      ...(change.kind === "solution" ? { withSolution: true } : {}),
      environment: task.verifier.env,
      withTests: true,
      steps: [...steps],
      ...(limits === undefined ? {} : { limits }),
      ...(overrides === undefined ? {} : { overrides }),
      ...request,
    },
    { deadlineMs: timeoutMs + Math.max(prepareTimeoutMs, SANDBOX_ALLOWANCE_MS), signal },
  );
}
