/**
 * Owns reading how often tasks were solved, from the rows an inference or a validation left: one row a task with
 * `solve_rate`, or `resolved` of `attempts`; or one row a trial with `resolved` or `reward`. Does not measure.
 */
import { MortiseError } from "@mortise/contracts";
import { openRows } from "../import/rows/open-rows.js";
import { isObject, type Row } from "../import/rows/row.js";
import type { IndexedTask } from "./indexed-task.js";

const NAMES = ["task", "task_id", "id", "instance_id"] as const;

/** Solve rates in [0, 1] by name of task or instance, lower case. Throws MORTISE_TASK_RECORD naming the row. */
export async function readSolveRates(path: string): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, { resolved: number; attempts: number }>();
  for await (const row of (await openRows(path)).rows()) {
    for (const { place, fields } of rowsIn(row)) {
      const name = NAMES.map((key) => fields[key]).find((value) => typeof value === "string" && value !== "");
      if (typeof name !== "string")
        throw refused(place, "task", "is absent", "Add task: the name of the task.");
      const { resolved, attempts } = outcomeOf(fields, place);
      const earlier = counts.get(name.toLowerCase()) ?? { resolved: 0, attempts: 0 };
      counts.set(name.toLowerCase(), {
        resolved: earlier.resolved + resolved,
        attempts: earlier.attempts + attempts,
      });
    }
  }
  return new Map([...counts].map(([name, { resolved, attempts }]) => [name, resolved / attempts]));
}

/** The tasks, with the rate of those that have one. */
export function withSolveRates(
  tasks: readonly IndexedTask[],
  rates: ReadonlyMap<string, number>,
): IndexedTask[] {
  return tasks.map((task) => {
    const rate = rates.get(task.id.toLowerCase()) ?? rates.get(task.instance.toLowerCase());
    return rate === undefined ? task : { ...task, solveRate: rate };
  });
}

/** A report holds its rows in `tasks`. */
function rowsIn({ place, fields }: Row): Row[] {
  if (!Array.isArray(fields.tasks)) return [{ place, fields }];
  return fields.tasks.map((value: unknown, index) => {
    const inner = `${place} tasks[${index}]`;
    if (!isObject(value)) throw refused(inner, "task", "is no object", "Write {task, resolved, attempts}.");
    return { place: inner, fields: value };
  });
}

function outcomeOf(fields: Row["fields"], place: string): { resolved: number; attempts: number } {
  const { solve_rate: rate, resolved, attempts, reward } = fields;
  if (typeof rate === "number" && rate >= 0 && rate <= 1) return { resolved: rate, attempts: 1 };
  if (typeof resolved === "boolean") return { resolved: Number(resolved), attempts: 1 };
  const isCounted =
    Number.isInteger(resolved) && Number.isInteger(attempts) && Number(attempts) > 0 && Number(resolved) >= 0;
  if (isCounted && Number(resolved) <= Number(attempts))
    return { resolved: Number(resolved), attempts: Number(attempts) };
  if (typeof reward === "number" && Number.isFinite(reward))
    return { resolved: Number(reward >= 1), attempts: 1 };
  throw refused(
    place,
    "solve_rate",
    "is absent or out of range, and so are resolved, attempts and reward",
    "Add solve_rate in [0, 1], or resolved and attempts.",
  );
}

function refused(place: string, field: string, what: string, fix: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_RECORD",
    message: `${place}: ${field} ${what}.`,
    fix,
    detail: { field, source: place },
  });
}
