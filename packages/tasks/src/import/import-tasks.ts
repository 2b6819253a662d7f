/**
 * Owns an import: rows in, task directories and their index out. Every row is read twice: first to check all of
 * them, then to write, so that nothing is written unless everything can be.
 *
 * I1  The same source gives the same bytes; a directory that is there and equal is kept, so an import that was
 *     ended continues where it was.
 * I2  A directory that is there and differs is never overwritten unasked.
 * I3  Two instances never share a directory.
 */
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { digestOfFiles } from "../harbor/digest.js";
import { writeIndex } from "../selection/index-files.js";
import type { IndexedTask } from "../selection/indexed-task.js";
import { SHARED_COLUMNS } from "./datasets/dataset.js";
import { datasetNamed, datasetOf } from "./datasets/detect.js";
import { importedTaskFiles, type TaskLimits } from "./directory/task-files.js";
import { putTask, removePartial, standingOf } from "./directory/write-task.js";
import { indexedTaskOf, mergedIndex } from "./index-of-import.js";
import { type RowProblem, type RowRepair, recordsRefused } from "./problems.js";
import { readTaskRecord } from "./read-record.js";
import type { DatasetName, TaskRecord } from "./record.js";
import type { Row, RowSource } from "./rows/row.js";

export interface ImportOptions {
  /** Absent: told by the columns of each row. */
  readonly dataset?: DatasetName;
  readonly split: string;
  readonly limits: TaskLimits;
  /** Leave out rows that are refused, instead of importing nothing. */
  readonly skipInvalid: boolean;
  /** Write directories anew that are there with other content. */
  readonly replace: boolean;
  /** Take records that are graded by an exit code alone. */
  readonly allowExitCode: boolean;
  /** Told after each row: how many have been checked, then how many have been looked at to be written. */
  readonly onRow?: (stage: "checked" | "written", rows: number) => void;
}

export interface ImportReport {
  readonly rows: number;
  /** Tasks by data set. */
  readonly datasets: Readonly<Partial<Record<DatasetName, number>>>;
  readonly written: number;
  readonly kept: number;
  readonly replaced: number;
  /** Rows that repeat an earlier one. */
  readonly repeated: number;
  readonly refused: readonly RowProblem[];
  readonly repairs: readonly RowRepair[];
  /** Columns nothing reads; their values are kept in tests/config.json. */
  readonly unknownColumns: readonly string[];
  readonly index: readonly string[];
}

interface Planned {
  readonly place: string;
  readonly instance: string;
  readonly digest: string;
  readonly task: IndexedTask;
  readonly standing: "absent" | "equal" | "different";
}

interface Plan {
  rows: number;
  repeated: number;
  readonly tasks: Map<string, Planned>;
  readonly problems: RowProblem[];
  readonly repairs: RowRepair[];
  readonly unknownColumns: Set<string>;
}

const SHOWN_DIRECTORIES = 5;

/** Throws MORTISE_TASK_RECORD, MORTISE_TASK_SOURCE or MORTISE_TASK_EXISTS before anything is written. */
export async function importTasks(
  source: RowSource,
  root: string,
  options: ImportOptions,
): Promise<ImportReport> {
  const plan = await planOf(source, root, options);
  if (plan.problems.length > 0 && !options.skipInvalid) throw recordsRefused(plan.problems);
  if (plan.tasks.size === 0) throw nothingLeft(source, plan);
  refuseDifferent(plan, root, options);
  removePartial(root);
  await write(source, root, plan, options);
  const planned = [...plan.tasks.values()];
  const count = (standing: Planned["standing"]) =>
    planned.filter((task) => task.standing === standing).length;
  const tasks = await mergedIndex(
    root,
    planned.map(({ task }) => task),
  );
  return {
    rows: plan.rows,
    datasets: countsOf(planned),
    written: count("absent"),
    kept: count("equal"),
    replaced: count("different"),
    repeated: plan.repeated,
    refused: plan.problems,
    repairs: plan.repairs,
    unknownColumns: [...plan.unknownColumns].sort(),
    index: writeIndex(root, tasks, options.split),
  };
}

async function planOf(source: RowSource, root: string, options: ImportOptions): Promise<Plan> {
  const plan: Plan = {
    rows: 0,
    repeated: 0,
    tasks: new Map(),
    problems: [],
    repairs: [],
    unknownColumns: new Set(),
  };
  for await (const row of source.rows()) {
    plan.rows++;
    const dataset =
      options.dataset === undefined ? datasetOf(row.fields, row.place) : datasetNamed(options.dataset);
    const known = new Set([...SHARED_COLUMNS, ...dataset.columns]);
    for (const column of Object.keys(row.fields)) if (!known.has(column)) plan.unknownColumns.add(column);
    const reading = readTaskRecord(row, dataset, options);
    if ("problems" in reading) plan.problems.push(...reading.problems);
    else addTask(plan, row, reading.record, reading.repairs, root, options);
    options.onRow?.("checked", plan.rows);
  }
  return plan;
}

function addTask(
  plan: Plan,
  { place }: Row,
  record: TaskRecord,
  repairs: readonly RowRepair[],
  root: string,
  options: ImportOptions,
): void {
  const digest = digestOfFiles(importedTaskFiles(record, options.limits));
  const earlier = plan.tasks.get(record.id);
  if (earlier?.digest === digest) plan.repeated++;
  else if (earlier !== undefined) plan.problems.push(collision(record, place, earlier));
  else {
    plan.repairs.push(...repairs);
    plan.tasks.set(record.id, {
      place,
      instance: record.instance,
      digest,
      task: indexedTaskOf(record, digest, options.split),
      standing: standingOf(join(root, record.id), digest),
    });
  }
}

/** I3 */
function collision({ id, instance }: TaskRecord, place: string, earlier: Planned): RowProblem {
  const isSame = earlier.instance === instance;
  return {
    place,
    instance,
    field: "instance_id",
    what: isSame
      ? `is that of ${earlier.place} too, with other content`
      : `would have the directory ${id}, as ${earlier.instance} at ${earlier.place} has`,
    fix: isSame
      ? "Leave one of the records out."
      : "Rename one of the instances, or import them into two directories.",
  };
}

/** I2 */
function refuseDifferent(plan: Plan, root: string, { replace }: ImportOptions): void {
  const different = [...plan.tasks].filter(([, { standing }]) => standing === "different").map(([id]) => id);
  if (replace || different.length === 0) return;
  const shown = different.slice(0, SHOWN_DIRECTORIES).join(", ");
  const more = different.length - SHOWN_DIRECTORIES;
  throw new MortiseError({
    code: "MORTISE_TASK_EXISTS",
    message: `${root}: ${shown}${more > 0 ? ` and ${more} more` : ""}.`,
    detail: { path: root, tasks: different.length },
  });
}

async function write(source: RowSource, root: string, plan: Plan, options: ImportOptions): Promise<void> {
  let rows = 0;
  for await (const row of source.rows()) {
    options.onRow?.("written", ++rows);
    const dataset =
      options.dataset === undefined ? datasetOf(row.fields, row.place) : datasetNamed(options.dataset);
    const reading = readTaskRecord(row, dataset, options);
    if ("problems" in reading) continue;
    const { record } = reading;
    const planned = plan.tasks.get(record.id);
    if (planned === undefined || planned.place !== row.place || planned.standing === "equal") continue;
    const files = importedTaskFiles(record, options.limits);
    if (digestOfFiles(files) !== planned.digest) throw changed(source, row.place);
    putTask(root, record.id, files);
  }
}

function countsOf(planned: readonly Planned[]): ImportReport["datasets"] {
  const counts: Partial<Record<DatasetName, number>> = {};
  for (const { task } of planned) {
    const dataset = task.dataset as DatasetName;
    counts[dataset] = (counts[dataset] ?? 0) + 1;
  }
  return counts;
}

function nothingLeft(source: RowSource, plan: Plan): MortiseError {
  if (plan.problems.length > 0) return recordsRefused(plan.problems);
  return new MortiseError({
    code: "MORTISE_TASK_SOURCE",
    message: `${source.name}: holds no rows.`,
    detail: { source: source.name },
  });
}

function changed(source: RowSource, place: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_SOURCE",
    message: `${source.name}: ${place} changed while it was imported.`,
    fix: "Import again once nobody writes the file; what was written so far is kept.",
    detail: { source: source.name },
  });
}
