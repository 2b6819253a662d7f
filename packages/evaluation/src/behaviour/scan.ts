/**
 * Owns the behaviour scan: what one transcript shows of how an agent worked, and the same over many. Deterministic,
 * from the transcript alone; nothing is asked of a model.
 *
 * B1  A column that a transcript cannot answer is null and counts in no share (C10).
 * B2  Files are the same when one path ends with the other, so that absolute and relative spellings meet.
 */
import { mean } from "@mortise/objectives";
import { type Action, actionOf } from "./actions.js";
import { CATEGORIES, type ToolCategory } from "./tool-categories.js";
import type { Transcript } from "./transcript.js";

export interface Behaviour {
  readonly turns: number;
  readonly calls: number;
  readonly callsBy: Readonly<Record<ToolCategory, number>>;
  /** Calls the harness could not carry out as written. */
  readonly malformedCalls: number;
  readonly failedCommands: number;
  readonly editedFiles: number;
  /** Different files shown before the first edit; null when nothing was edited. */
  readonly filesReadBeforeEdit: number | null;
  /** A program or tests ran before the first edit; null when nothing was edited. A reproduction may be written first. */
  readonly reproducesFirst: boolean | null;
  /** A file was shown again after it was edited; null when nothing was edited. */
  readonly rereadsEdited: boolean | null;
  readonly runsTests: boolean;
  /** Tests ran after the last edit; null when nothing was edited. */
  readonly testsAfterEdit: boolean | null;
  /** `tool`: by the harness's own call; `answer`: by a reply without calls; `none`: it was ended. */
  readonly finish: "tool" | "answer" | "none";
}

/** Files whose name begins with one of these words reproduce or try something out: writing one is no edit of the code. */
const TRIAL_WORD = /^(repro\w*|debug|demo|scratch|tmp|try|check|verify|test|tests)$/i;

export function scanBehaviour({ harness, offered, turns }: Transcript): Behaviour {
  const actions = turns.flatMap(({ calls }) => calls.map((call) => actionOf(harness, call, offered)));
  const isEdit = (action: Action) => action.edits.some((path) => !isTrialFile(path)) || isBareEdit(action);
  const firstEdit = actions.findIndex(isEdit);
  const lastEdit = actions.findLastIndex(isEdit);
  const before = actions.slice(0, Math.max(firstEdit, 0));
  const ifEdited = <T>(value: T): T | null => (firstEdit < 0 ? null : value);
  return {
    turns: turns.length,
    calls: actions.length,
    callsBy: countByCategory(actions),
    malformedCalls: actions.filter(({ isMalformed }) => isMalformed).length,
    failedCommands: actions.filter(({ isFailedCommand }) => isFailedCommand).length,
    editedFiles: distinct(actions.flatMap(({ edits }) => edits)).length,
    filesReadBeforeEdit: ifEdited(distinct(before.flatMap(({ reads }) => reads)).length),
    reproducesFirst: ifEdited(before.some(({ runsProgram }) => runsProgram)),
    rereadsEdited: ifEdited(hasRereading(actions)),
    runsTests: actions.some(({ runsTests }) => runsTests),
    testsAfterEdit: ifEdited(actions.slice(lastEdit + 1).some(({ runsTests }) => runsTests)),
    finish: finishOf(turns, actions),
  };
}

/** Of many transcripts: shares in [0, 1] and means over those that have an answer; null where none has (B1). */
export interface BehaviourSummary {
  readonly trials: number;
  readonly callsPerTrial: number | null;
  /** Mean number of calls a trial. */
  readonly callsBy: Readonly<Record<ToolCategory, number | null>>;
  readonly malformedShare: number | null;
  readonly filesReadBeforeEdit: number | null;
  readonly reproducesFirst: number | null;
  readonly rereadsEdited: number | null;
  readonly runsTests: number | null;
  readonly testsAfterEdit: number | null;
  readonly explicitFinish: number | null;
  /** Of the resolved trials, those in which a command had failed. */
  readonly solvedDespiteFailure: number | null;
}

/** @param trials isResolved is undefined for a lost trial, which has behaviour but no verdict */
export function summariseBehaviour(
  trials: readonly { readonly behaviour: Behaviour; readonly isResolved: boolean | undefined }[],
): BehaviourSummary {
  const all = trials.map(({ behaviour }) => behaviour);
  const resolved = trials.filter(({ isResolved }) => isResolved === true);
  const calls = all.reduce((sum, one) => sum + one.calls, 0);
  const malformed = all.reduce((sum, one) => sum + one.malformedCalls, 0);
  return {
    trials: all.length,
    callsPerTrial: average(all.map((one) => one.calls)),
    callsBy: byCategory((category) => average(all.map((one) => one.callsBy[category]))),
    malformedShare: calls === 0 ? null : malformed / calls,
    filesReadBeforeEdit: average(all.map((one) => one.filesReadBeforeEdit)),
    reproducesFirst: average(all.map((one) => one.reproducesFirst)),
    rereadsEdited: average(all.map((one) => one.rereadsEdited)),
    runsTests: average(all.map((one) => one.runsTests)),
    testsAfterEdit: average(all.map((one) => one.testsAfterEdit)),
    explicitFinish: average(all.map((one) => one.finish !== "none")),
    solvedDespiteFailure: average(resolved.map(({ behaviour }) => behaviour.failedCommands > 0)),
  };
}

/** An edit tool that names no file: the harness works on one that its instruction names. */
function isBareEdit({ category, edits, isMalformed }: Action): boolean {
  return category === "edit" && edits.length === 0 && !isMalformed;
}

function isTrialFile(path: string): boolean {
  const name = path.split("/").at(-1)!;
  return TRIAL_WORD.test(name.split(/[_.-]/, 1)[0]!);
}

function hasRereading(actions: readonly Action[]): boolean {
  const edited: string[] = [];
  for (const { reads, edits } of actions) {
    if (reads.some((path) => edited.some((other) => isSameFile(path, other)))) return true;
    edited.push(...edits);
  }
  return false;
}

/** Malformed calls end nothing, and neither does a turn that says nothing. */
function finishOf(turns: Transcript["turns"], actions: readonly Action[]): Behaviour["finish"] {
  if (actions.some(({ finishes }) => finishes)) return "tool";
  const last = turns.at(-1);
  return last !== undefined && last.calls.length === 0 && last.text.trim() !== "" ? "answer" : "none";
}

function countByCategory(actions: readonly Action[]): Record<ToolCategory, number> {
  return byCategory((category) => actions.filter((action) => action.category === category).length);
}

function byCategory<T>(of: (category: ToolCategory) => T): Record<ToolCategory, T> {
  return Object.fromEntries(CATEGORIES.map((category) => [category, of(category)])) as Record<
    ToolCategory,
    T
  >;
}

/** Mean of what is known; a boolean counts 1 or 0. */
function average(values: readonly (number | boolean | null)[]): number | null {
  return mean(values.filter((value) => value !== null).map(Number));
}

/** B2 */
function isSameFile(a: string, b: string): boolean {
  const [long, short] = [normalised(a), normalised(b)].sort((x, y) => y.length - x.length) as [
    string,
    string,
  ];
  return long === short || long.endsWith(`/${short}`);
}

function normalised(path: string): string {
  return path.replace(/^(\.\/)+/, "").replace(/\/{2,}/g, "/");
}

function distinct(paths: readonly string[]): string[] {
  const found: string[] = [];
  for (const path of paths) if (!found.some((other) => isSameFile(path, other))) found.push(path);
  return found;
}
