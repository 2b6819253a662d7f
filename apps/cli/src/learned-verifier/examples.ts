/**
 * Owns which attempts a learned verifier is trained on and which it is measured on. Deterministic: the same attempts and
 * the same seed give the same choice, in whatever order they come.
 *
 * X1  No task is on both sides, whichever runs its attempts are of.
 * X2  Of a task as many resolved attempts are trained on as unresolved ones: which task it is says nothing of the answer.
 */
import { createHash } from "node:crypto";
import type { TrialLog } from "./judge-template.js";

/** An attempt with a valid verdict, as a verifier is shown it. */
export interface JudgedAttempt {
  readonly run: string;
  readonly set: string;
  readonly task: string;
  readonly trial: string;
  readonly isResolved: boolean;
  readonly log: TrialLog;
}

export interface TaskSplit {
  readonly trained: ReadonlySet<string>;
  readonly heldOut: ReadonlySet<string>;
}

/**
 * X1. Families of tasks in the order of a seeded digest; the first of them are held out.
 * @param share of the families that is held out, in (0, 1): rounded, and of two or more at least one on each side
 * @param pattern of what tasks that teach the answers of each other have in common; each is its own family when absent
 */
export function splitTasks(
  tasks: Iterable<string>,
  share: number,
  seed: number,
  pattern?: RegExp,
): TaskSplit {
  const family = familyBy(pattern);
  const known = [...new Set(tasks)];
  const families = ranked([...new Set(known.map(family))], (name) => `${seed}/${name}`);
  const count = Math.min(Math.max(Math.round(share * families.length), 1), Math.max(families.length - 1, 0));
  const heldOut = new Set(families.slice(0, count));
  return {
    heldOut: new Set(known.filter((task) => heldOut.has(family(task)))),
    trained: new Set(known.filter((task) => !heldOut.has(family(task)))),
  };
}

/** Whether a task or another of its family was trained on. */
export function seenTasks(trained: readonly string[], pattern?: RegExp): (task: string) => boolean {
  const family = familyBy(pattern);
  const seen = new Set(trained.map(family));
  return (task) => seen.has(family(task));
}

/** What the pattern's first group, or the whole match, finds in a task's name; the name itself where it finds nothing. */
function familyBy(pattern: RegExp | undefined): (task: string) => string {
  return (task) => {
    const found = pattern?.exec(task);
    return found?.[1] ?? found?.[0] ?? task;
  };
}

/**
 * X2. In the order of run, task and trial.
 * @param atMost resolved attempts of one task, and as many unresolved
 */
export function balancedExamples<A extends JudgedAttempt>(
  attempts: readonly A[],
  atMost: number,
  seed: number,
): A[] {
  const byTask = new Map<string, A[]>();
  for (const attempt of ranked(attempts, ({ run, trial }) => `${seed}/${run}/${trial}`)) {
    const known = byTask.get(attempt.task);
    if (known) known.push(attempt);
    else byTask.set(attempt.task, [attempt]);
  }
  const taken = [...byTask.values()].flatMap((own) => {
    const resolved = own.filter(({ isResolved }) => isResolved);
    const unresolved = own.filter(({ isResolved }) => !isResolved);
    const count = Math.min(atMost, resolved.length, unresolved.length);
    return [...resolved.slice(0, count), ...unresolved.slice(0, count)];
  });
  return taken.sort((a, b) => compare(a.run, b.run) || compare(a.task, b.task) || compare(a.trial, b.trial));
}

/** Of everything the examples are: where they come from, what is shown, what the answer is. */
export function examplesDigest(examples: readonly JudgedAttempt[]): string {
  const hash = createHash("sha256");
  for (const { run, set, task, trial, isResolved, log } of examples)
    hash.update(`${JSON.stringify([run, set, task, trial, isResolved, log.task, log.entries])}\n`);
  return hash.digest("hex");
}

/** As good as drawn at random, and always the same. */
function ranked<T>(values: readonly T[], name: (value: T) => string): T[] {
  return values
    .map((value) => ({ value, rank: createHash("sha256").update(name(value)).digest("hex") }))
    .sort((a, b) => compare(a.rank, b.rank))
    .map(({ value }) => value);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
