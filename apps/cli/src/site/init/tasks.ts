/**
 * Owns the tasks of a new site: a directory that has an index is used where it is; of any other the tasks are linked
 * into the site and indexed there, so that nothing is written among somebody's tasks. Every task is loaded first.
 */
import { existsSync, lstatSync, mkdirSync, readlinkSync, statSync, symlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import {
  listTaskIds,
  loadIndexedTask,
  loadTask,
  readTaskIndex,
  type Task,
  type TaskIndexEntry,
  taskDigest,
  writeTaskIndex,
} from "@mortise/tasks";
import { unionOf } from "@mortise/tasks/selection";
import { wrong } from "../refusal.js";

const FLAG = "--tasks";
const TRAIN = "train";
const HELD_OUT = "heldout";
/** Of the tasks that cannot be used, how many are named. */
const MOST_NAMED = 8;

export interface SiteTasks {
  /** What becomes tasks.directory of the site file. */
  readonly directory: string;
  readonly entries: readonly TaskIndexEntry[];
  readonly tasks: readonly Task[];
  /** Where each task lies, for a directory that has to be made; absent when there is one with an index. */
  readonly places?: ReadonlyMap<string, string>;
  /** What was overlooked in them. */
  readonly warnings: readonly string[];
}

export interface TasksWish {
  /** A directory of Harbor task directories, with an index or without, or an index file. */
  readonly given: string;
  /** How many to set apart for evaluation where no index says it. */
  readonly heldOut: number;
  /** Directory of links and their index, where they are needed. */
  readonly linked: string;
}

/** @throws MORTISE_CONFIG_INVALID, MORTISE_TASK_* naming --tasks and what is wrong with which task */
export async function chooseTasks(wish: TasksWish): Promise<SiteTasks> {
  const given = resolve(wish.given);
  const stat = statSync(given, { throwIfNoEntry: false });
  if (stat === undefined)
    throw wrong(FLAG, `${given} does not exist.`, "Name a directory of Harbor tasks or an index.");
  const directory = stat.isDirectory() ? given : dirname(given);
  const isWhole = stat.isDirectory() || given === join(directory, "index.json");
  if (isWhole && existsSync(join(directory, "index.json"))) {
    const entries = readTaskIndex(directory);
    const tasks = loadAll(entries, (entry) => loadIndexedTask(directory, entry));
    if (wish.heldOut > 0)
      throw wrong(
        "--held-out",
        `${directory} has an index, which says the split of each task.`,
        "Leave --held-out away, or change the splits with `mortise tasks index`.",
      );
    return { directory, entries, tasks, warnings: warningsOf(tasks) };
  }
  const placed = stat.isDirectory() ? placedIn(directory) : await placedBy(given);
  const tasks = loadAll([...placed.values()], ({ path }) => loadTask(path));
  const entries = entriesOf(tasks, placed, wish.heldOut);
  const places = new Map([...placed.values()].map(({ id, path }) => [id, path]));
  return { directory: wish.linked, entries, tasks, places, warnings: warningsOf(tasks) };
}

/** Makes the directory of links and its index; what is there and right is kept. */
export function writeLinks({ directory, places, entries }: SiteTasks): void {
  if (places === undefined) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const [id, path] of places) {
    const link = join(directory, id);
    const there = lstatSync(link, { throwIfNoEntry: false });
    if (there === undefined) symlinkSync(path, link);
    else if (!there.isSymbolicLink() || readlinkSync(link) !== path)
      throw wrong(FLAG, `${link} is there already and is not ${path}.`, `Remove ${link}.`);
  }
  writeTaskIndex(directory, entries);
}

interface Placed {
  readonly id: string;
  readonly path: string;
  readonly split?: string;
}

function placedIn(directory: string): Map<string, Placed> {
  if (existsSync(join(directory, "task.toml")))
    throw wrong(
      FLAG,
      `${directory} is one task.`,
      `Name the directory it lies in: ${dirname(directory)}. Every task directory there is taken.`,
    );
  const ids = listTaskIds(directory);
  if (ids.length === 0)
    throw wrong(
      FLAG,
      `${directory} holds no task: no directory in it has a task.toml.`,
      "Name a directory of Harbor task directories, or get some: mortise tasks import.",
      "MORTISE_TASK_UNKNOWN",
    );
  return new Map(ids.map((id) => [id, { id, path: join(directory, id) }]));
}

/** By the rows of an index file. */
async function placedBy(file: string): Promise<Map<string, Placed>> {
  const { tasks } = await unionOf([{ path: file }]);
  const placed = new Map<string, Placed>();
  for (const { id, path, split } of tasks) {
    const other = placed.get(id);
    if (other !== undefined && other.path !== path)
      throw wrong(
        FLAG,
        `${file} has two tasks called ${id}: ${other.path} and ${path}.`,
        "Leave one of them out.",
      );
    placed.set(id, { id, path: path!, ...(split === undefined ? {} : { split }) });
  }
  if (placed.size === 0)
    throw wrong(FLAG, `${file} has no row.`, "Name an index with tasks.", "MORTISE_TASK_UNKNOWN");
  return placed;
}

/** All, or an error that names every task that cannot be used, as far as that is readable. */
function loadAll<T>(items: readonly T[], load: (item: T) => Task): Task[] {
  const problems: string[] = [];
  const tasks = items.flatMap((item) => {
    try {
      return [load(item)];
    } catch (error) {
      problems.push((error as Error).message);
      return [];
    }
  });
  if (problems.length === 0) return tasks;
  const named = problems.slice(0, MOST_NAMED).map((problem) => `\n  - ${problem}`);
  const more = problems.length > MOST_NAMED ? `\n  - and ${problems.length - MOST_NAMED} more` : "";
  throw wrong(
    FLAG,
    `${problems.length} of ${items.length} tasks cannot be used:${named.join("")}${more}`,
    "Correct these, or take them out of the directory.",
    "MORTISE_TASK_INVALID",
  );
}

/** Splits as the rows have them; else the last by digest, which is no order of anybody's, are held out. */
function entriesOf(
  tasks: readonly Task[],
  placed: ReadonlyMap<string, Placed>,
  heldOut: number,
): TaskIndexEntry[] {
  const plain = tasks.map(({ id, directory }) => ({ id, digest: taskDigest(directory) }));
  const splits = plain.flatMap(({ id }) => placed.get(id)?.split ?? []);
  if (heldOut > 0 && splits.length > 0)
    throw wrong(
      "--held-out",
      "the index says the split of tasks already.",
      "Leave --held-out away, or change the splits with `mortise tasks index`.",
    );
  if (heldOut >= plain.length && heldOut > 0)
    throw wrong(
      "--held-out",
      `${heldOut} of ${plain.length} tasks leave none to train on.`,
      `Give at most ${plain.length - 1}.`,
    );
  const byDigest = plain.toSorted((a, b) => (a.digest < b.digest ? -1 : 1));
  const apart = new Set(byDigest.slice(plain.length - heldOut).map(({ id }) => id));
  return plain.map(({ id, digest }) => ({
    id,
    digest,
    split: placed.get(id)?.split ?? (apart.has(id) ? HELD_OUT : TRAIN),
  }));
}

function warningsOf(tasks: readonly Task[]): string[] {
  return tasks.flatMap(({ id, warnings }) => warnings.map((warning) => `${id}: ${warning}`));
}

/** The splits a run of these tasks would train on and evaluate on. */
export function splitsOf(entries: readonly TaskIndexEntry[]): {
  readonly train: string;
  readonly evaluate: string;
} {
  const names = new Set(entries.map(({ split }) => split));
  const train = names.has(TRAIN) ? TRAIN : [...names].sort()[0]!;
  return { train, evaluate: names.has(HELD_OUT) ? HELD_OUT : train };
}
