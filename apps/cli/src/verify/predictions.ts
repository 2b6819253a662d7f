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

const BYTE_ORDER_MARK = /^\uFEFF/;

const Row = z.looseObject({
  instance_id: z.string().min(1),
  model_patch: z.string().nullish(),
  /** SWE-bench's older name. */
  prediction: z.string().nullish(),
  model_name_or_path: z.string().nullish(),
});

interface Placed {
  /** For messages: `file:3`, of lines and of entries of a list. */
  readonly place: string;
  readonly row: unknown;
}

/** Throws MORTISE_TASK_RECORD naming the row and the field, also where one model proposes twice for one instance. */
export async function readPredictions(path: string): Promise<Prediction[]> {
  const text = (await readFile(path, "utf8")).replace(BYTE_ORDER_MARK, "");
  const rows = /\.(?:jsonl|ndjson)$/.test(path) ? linesOf(text, path) : rowsOf(parsed(text, path), path);
  const places = new Map<string, string>();
  return rows.map(({ place, row }) => {
    const prediction = predictionOf(row, place);
    const key = JSON.stringify([prediction.instance, prediction.model]);
    const earlier = places.get(key);
    if (earlier !== undefined)
      throw refused(
        place,
        "instance_id",
        `${place}: ${prediction.instance} has a prediction of this model already, at ${earlier}.`,
        { fix: "Leave one of them out, or give them different values of model_name_or_path." },
      );
    places.set(key, place);
    return prediction;
  });
}

function predictionOf(row: unknown, place: string): Prediction {
  const read = Row.safeParse(row);
  if (!read.success) {
    const { path: field, message } = read.error.issues[0]!;
    throw refused(place, field.join(".") || "row", `${place}: ${field.join(".") || "the row"}: ${message}.`);
  }
  const { instance_id, model_patch, prediction, model_name_or_path } = read.data;
  return {
    instance: instance_id,
    model: model_name_or_path ?? "",
    patch: withEnd(model_patch ?? prediction ?? ""),
  };
}

/** A diff whose last line lost its end is cut to every program that reads diffs. */
export function withEnd(diff: string): string {
  return diff.trim() === "" ? "" : diff.endsWith("\n") ? diff : `${diff}\n`;
}

function linesOf(text: string, path: string): Placed[] {
  return text.split("\n").flatMap((line, at) => {
    const place = `${path}:${at + 1}`;
    return line.trim() === "" ? [] : [{ place, row: parsed(line, place) }];
  });
}

/** An object may be one prediction, or hold them by instance. */
function rowsOf(value: unknown, path: string): Placed[] {
  if (Array.isArray(value)) return value.map((row, at) => ({ place: `${path}:${at + 1}`, row }));
  if (typeof value !== "object" || value === null || "instance_id" in value)
    return [{ place: `${path}:1`, row: value }];
  return Object.entries(value).map(([instance, row]) => {
    const place = `${path}: ${instance}`;
    if (typeof row === "object" && row !== null && !Array.isArray(row))
      return { place, row: { instance_id: instance, ...row } };
    throw refused(place, instance, `${place}: is no object with model_patch.`);
  });
}

function parsed(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw refused(place, "--predictions", `${place} is no JSON: ${(cause as Error).message}.`, { cause });
  }
}

function refused(
  source: string,
  field: string,
  message: string,
  more: { readonly fix?: string; readonly cause?: unknown } = {},
): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_RECORD",
    message,
    fix: "Give predictions as the harness of SWE-bench takes them: instance_id, model_patch, model_name_or_path.",
    ...more,
    detail: { field, source },
  });
}
