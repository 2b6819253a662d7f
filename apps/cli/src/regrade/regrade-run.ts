/**
 * Owns judging the kept evidence of a run's trials again, and what is different from what stood. Runs nothing and
 * writes nothing.
 */
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import {
  type Content,
  MortiseError,
  subjectToken,
  type TaskRef,
  type Verdict,
  VerdictSchema,
} from "@mortise/contracts";
import { loadTask, type Task, taskDigest } from "@mortise/tasks";
import { decodeEvidence, judgeRun, verdictFields } from "@mortise/verifier";
import type { RunVerdicts } from "./run-verdicts.js";

export interface RegradedTrial {
  readonly trial: string;
  readonly task: string;
  /** What stood: the verdict, or the last regrade. */
  readonly before: Verdict;
  /** What the graders of today say. */
  readonly after: Verdict;
  /** Outcome or reward differ. */
  readonly isChanged: boolean;
  /** Same outcome and reward, by another parser, rule, or with other results of single tests. */
  readonly isRefined: boolean;
  readonly evidenceSha256: string;
}

export interface SkippedTrial {
  readonly trial: string;
  readonly reason: string;
}

export interface RegradedRun {
  readonly trials: readonly RegradedTrial[];
  /** Verdicts that cannot be judged again, and why. */
  readonly skipped: readonly SkippedTrial[];
}

/** Judges every verdict of a run again that has evidence and a task as it was. */
export async function regradeRun(run: RunVerdicts, tasks: string): Promise<RegradedRun> {
  const shelf = new Map<string, Task>();
  const trials: RegradedTrial[] = [];
  const skipped: SkippedTrial[] = [];
  for (const [trial, { message: verdict }] of run.verdicts) {
    const { evidence } = verdict;
    if (evidence === undefined) {
      skipped.push({ trial, reason: "its verdict names no evidence" });
      continue;
    }
    try {
      trials.push(await regradeTrial(run, { ...verdict, evidence }, (ref) => taskOf(shelf, tasks, ref)));
    } catch (error) {
      if (!(error instanceof MortiseError)) throw error;
      skipped.push({ trial, reason: error.message });
    }
  }
  return { trials, skipped };
}

async function regradeTrial(
  run: RunVerdicts,
  verdict: Verdict & { readonly evidence: Content },
  find: (ref: Pick<TaskRef, "id" | "digest">) => Task,
): Promise<RegradedTrial> {
  const { trial, evaluation, evidence } = verdict;
  const record = decodeEvidence(await run.content(evidence));
  const judged = judgeRun(find(record.task), record);
  const after = create(VerdictSchema, { run: run.run, trial, evaluation, ...verdictFields(judged) });
  const before = run.regrades.get(trial)?.message.judged ?? verdict;
  const isChanged = before.outcome !== after.outcome || before.reward !== after.reward;
  return {
    trial,
    task: record.task.id,
    before,
    after,
    isChanged,
    isRefined: !isChanged && (before.grader !== after.grader || resultsOf(before) !== resultsOf(after)),
    evidenceSha256: evidence.sha256,
  };
}

function taskOf(
  shelf: Map<string, Task>,
  directory: string,
  { id, digest }: Pick<TaskRef, "id" | "digest">,
): Task {
  const key = `${id}@${digest}`;
  const known = shelf.get(key);
  if (known !== undefined) return known;
  const task = loadTask(join(directory, subjectToken("task.id", id)));
  const found = taskDigest(task);
  if (found !== digest)
    throw new MortiseError({
      code: "MORTISE_TASK_DIGEST",
      message: `its task ${id} has digest ${found}, the evidence is of ${digest}`,
      detail: { task: id },
    });
  shelf.set(key, task);
  return task;
}

function resultsOf({ tests }: Verdict): string {
  return JSON.stringify(tests.map(({ name, status }) => [name, status]));
}
