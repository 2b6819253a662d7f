/**
 * Owns a row of a thin index: what is chosen by, and the row other trainers read (`prompt`, `reward_model`,
 * `extra_info`), in both directions. What such a row holds beyond that is kept as it is. Does not touch files.
 */
import { MortiseError } from "@mortise/contracts";
import { isObject } from "../import/rows/row.js";

export interface PromptMessage {
  readonly role: string;
  readonly content: string;
}

export interface IndexedTask {
  /** Name of the task directory. */
  readonly id: string;
  readonly instance: string;
  readonly prompt: readonly PromptMessage[];
  readonly dataset?: string;
  /** `owner/name`. */
  readonly repository?: string;
  readonly language?: string;
  readonly baseCommit?: string;
  /** ISO 8601. */
  readonly createdAt?: string;
  /** Digest of the directory. */
  readonly digest?: string;
  readonly split?: string;
  /** Of the task directory, relative to the index. */
  readonly path?: string;
  readonly image?: string;
  readonly difficulty?: string;
  readonly patchFiles?: number;
  readonly patchLines?: number;
  readonly failToPass?: number;
  readonly passToPass?: number;
  /** Share of trials that resolved, where an inference or a validation has measured it. */
  readonly solveRate?: number;
  /** How often it is drawn, against the others. */
  readonly weight?: number;
  /** What else the row held. */
  readonly other: {
    readonly row: Readonly<Record<string, unknown>>;
    readonly rewardModel: Readonly<Record<string, unknown>>;
    readonly extraInfo: Readonly<Record<string, unknown>>;
  };
}

/** The row as other trainers read it; keys without a value are left out. */
export interface IndexRow {
  readonly prompt: readonly PromptMessage[];
  readonly reward_model: Readonly<Record<string, unknown>>;
  readonly extra_info: Readonly<Record<string, unknown>>;
  readonly [column: string]: unknown;
}

/** Keys of `extra_info` and the fields they are here. */
export const TEXT_KEYS = {
  task: "id",
  instance_id: "instance",
  dataset: "dataset",
  repo: "repository",
  language: "language",
  base_commit: "baseCommit",
  created_at: "createdAt",
  digest: "digest",
  split: "split",
  path: "path",
  image: "image",
  difficulty: "difficulty",
} as const satisfies Record<string, keyof IndexedTask>;
export const NUMBER_KEYS = {
  patch_files: "patchFiles",
  patch_lines: "patchLines",
  fail_to_pass: "failToPass",
  pass_to_pass: "passToPass",
  solve_rate: "solveRate",
  weight: "weight",
} as const satisfies Record<string, keyof IndexedTask>;

/** Other names of `task` in rows other tools write. */
const TASK_ALIASES = ["task", "task_id", "task_name", "instance_id"];

/** `style` says who judges; the truth stays in the task directory, where no prompt is made from it. */
const REWARD_STYLE = "mortise";

export function toIndexRow(task: IndexedTask): IndexRow {
  const fields: Record<string, unknown> = {};
  for (const [key, field] of [...Object.entries(TEXT_KEYS), ...Object.entries(NUMBER_KEYS)])
    if (task[field] !== undefined) fields[key] = task[field];
  const { row, rewardModel, extraInfo } = task.other;
  return {
    data_source: task.dataset ?? "mortise",
    ability: "swe",
    ...row,
    prompt: task.prompt,
    reward_model: { style: REWARD_STYLE, ground_truth: task.id, ...rewardModel },
    extra_info: { ...extraInfo, ...fields },
  };
}

/** Throws MORTISE_TASK_RECORD naming the place, the field and the fix. */
export function fromIndexRow(row: Readonly<Record<string, unknown>>, place: string): IndexedTask {
  const { prompt, reward_model: rewardModel, extra_info: extraInfo, ...rest } = row;
  const extra = objectOf(extraInfo, "extra_info", place);
  const found: Record<string, unknown> = {};
  const other: Record<string, unknown> = { ...extra };
  const take = (keys: Readonly<Record<string, string>>, type: "string" | "number") => {
    for (const [key, field] of Object.entries(keys)) {
      const value = extra[key];
      if (typeof value !== type || value === "") continue;
      found[field] = value;
      delete other[key];
    }
  };
  take(TEXT_KEYS, "string");
  take(NUMBER_KEYS, "number");
  const id = TASK_ALIASES.map((key) => extra[key]).find((value) => typeof value === "string" && value !== "");
  if (typeof id !== "string")
    throw refused(
      place,
      "extra_info.task",
      "is absent",
      "Add extra_info.task: the name of the task directory.",
    );
  return {
    ...found,
    id: (found.id as string | undefined) ?? id,
    instance: (found.instance as string | undefined) ?? id,
    prompt: promptOf(prompt, place),
    other: { row: rest, rewardModel: objectOf(rewardModel, "reward_model", place), extraInfo: other },
  };
}

/** Messages, messages as JSON, or one text of the user. */
function promptOf(value: unknown, place: string): PromptMessage[] {
  const messages =
    typeof value === "string" ? (fromJson(value) ?? [{ role: "user", content: value }]) : value;
  const isList =
    Array.isArray(messages) &&
    messages.every(
      (message) =>
        isObject(message) && typeof message.role === "string" && typeof message.content === "string",
    );
  if (!isList)
    throw refused(place, "prompt", "is no list of messages", "Write [{role, content}], or one text.");
  return messages.map(({ role, content }: PromptMessage) => ({ role, content }));
}

function objectOf(value: unknown, field: string, place: string): Record<string, unknown> {
  const object = typeof value === "string" ? fromJson(value) : value;
  if (isObject(object)) return object;
  throw refused(place, field, "is no object", `Write ${field} as an object, or as JSON of one.`);
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refused(place: string, field: string, what: string, fix: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_RECORD",
    message: `${place}: ${field} ${what}.`,
    fix,
    detail: { field, source: place },
  });
}
