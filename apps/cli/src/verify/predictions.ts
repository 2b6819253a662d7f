/**
 * Owns reading predictions: what somebody's model proposed for instances of a data set, as the official harness of
 * SWE-bench takes them. A JSON list, an object by instance, or JSONL. Does not verify anything.
 */
import { readFile } from "node:fs/promises";
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";

export interface Prediction {
  readonly instance: string;
  /** Empty when the model proposed none. */
  readonly model: string;
  /** A unified diff; empty when nothing was proposed. */
  readonly patch: string;
}

const Row = z.looseObject({
  instance_id: z.string().min(1),
  model_patch: z.string().nullish(),
  /** SWE-bench's older name. */
  prediction: z.string().nullish(),
  model_name_or_path: z.string().nullish(),
});

/** Throws MORTISE_TASK_RECORD naming the row and the field. */
export async function readPredictions(path: string): Promise<Prediction[]> {
  const text = await readFile(path, "utf8");
  const rows = /\.(?:jsonl|ndjson)$/.test(path) ? linesOf(text, path) : rowsOf(parsed(text, path));
  return rows.map((row, at) => {
    const place = `${path}:${at + 1}`;
    const read = Row.safeParse(row);
    if (!read.success) {
      const { path: field, message } = read.error.issues[0]!;
      throw refused(
        place,
        field.join(".") || "row",
        `${place}: ${field.join(".") || "the row"}: ${message}.`,
      );
    }
    const { instance_id, model_patch, prediction, model_name_or_path } = read.data;
    return {
      instance: instance_id,
      model: model_name_or_path ?? "",
      patch: withEnd(model_patch ?? prediction ?? ""),
    };
  });
}

/** A diff whose last line lost its end is cut to every program that reads diffs. */
export function withEnd(diff: string): string {
  return diff.trim() === "" ? "" : diff.endsWith("\n") ? diff : `${diff}\n`;
}

function linesOf(text: string, path: string): unknown[] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line, at) => parsed(line, `${path}:${at + 1}`));
}

/** An object may be one prediction, or hold them by instance. */
function rowsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (typeof value !== "object" || value === null || "instance_id" in value) return [value];
  return Object.entries(value).map(([instance, row]) => ({ instance_id: instance, ...(row as object) }));
}

function parsed(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw refused(place, "--predictions", `${place} is no JSON: ${(cause as Error).message}.`, cause);
  }
}

function refused(source: string, field: string, message: string, cause?: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_RECORD",
    message,
    fix: "Give predictions as the harness of SWE-bench takes them: instance_id, model_patch, model_name_or_path.",
    ...(cause === undefined ? {} : { cause }),
    detail: { field, source },
  });
}
