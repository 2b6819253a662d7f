/**
 * Owns the shape of groups: attempts at one task that all passed, all failed, or did both. Only mixed ones carry
 * a group-relative signal (their rewards have variance).
 */
import { passAtK, passHatK } from "@mortise/objectives";
import { solvedOf, type TaskAttempts } from "./task-attempts.js";

export interface GroupShapes {
  readonly allPass: number;
  readonly allFail: number;
  readonly mixed: number;
}

/** How many of the groups have each shape; a single attempt is never mixed. */
export function groupShapes(groups: readonly Pick<TaskAttempts, "outcomes">[]): GroupShapes {
  const allPass = groups.filter(({ outcomes }) => outcomes.every(Boolean)).length;
  const allFail = groups.filter(({ outcomes }) => !outcomes.some(Boolean)).length;
  return { allPass, allFail, mixed: groups.length - allPass - allFail };
}

/**
 * Mean over tasks of the chance that k of its attempts, drawn without replacement, hold a success and a failure:
 * 1 − C(c, k)/C(n, k) − C(n−c, k)/C(n, k). It is pass@k − pass^k. `null` without tasks or when a task has fewer
 * than k attempts: it cannot be estimated (C10).
 */
export function mixedAtK(tasks: readonly TaskAttempts[], k: number): number | null {
  if (tasks.length === 0 || k < 1) return null;
  let total = 0;
  for (const task of tasks) {
    const n = task.outcomes.length;
    const some = passAtK(n, solvedOf(task), k);
    const all = passHatK(n, solvedOf(task), k);
    if (some === null || all === null) return null;
    // One drawn attempt is all-pass or all-fail; rounding must not say otherwise.
    total += k === 1 ? 0 : some - all;
  }
  return total / tasks.length;
}
