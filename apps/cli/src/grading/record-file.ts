/**
 * Owns finding a record in a file: the only one of a JSON file, or the one of a JSONL (or JSON) file with an
 * instance id. Does not know which fields a record needs.
 */
import { createReadStream, existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { MortiseError } from "@mortise/contracts";

export interface FoundRecord {
  readonly value: unknown;
  /** Where it stands, for errors about it. */
  readonly source: string;
}

/**
 * Reads the record a place names: `file.json` or `file.jsonl:INSTANCE_ID`.
 * @throws MORTISE_OPERATOR_FILES, MORTISE_TASK_RECORD
 */
export async function readRecordFile(place: string): Promise<FoundRecord> {
  const colon = place.lastIndexOf(":");
  if (existsSync(place) || colon < 0) return { value: await onlyRecord(place), source: place };
  const path = place.slice(0, colon);
  const instance = place.slice(colon + 1);
  const value = /\.jsonl$|\.ndjson$/.test(path)
    ? await recordOfLines(path, instance)
    : asList(parse(await readFile(path, "utf8"), path)).find((record) => idOf(record) === instance);
  if (value !== undefined) return { value, source: place };
  throw refused(
    place,
    `${path} has no record with the instance id "${instance}".`,
    "Check the id after the colon.",
  );
}

async function onlyRecord(path: string): Promise<unknown> {
  const text = await readFile(path, "utf8");
  const isLines = /\.jsonl$|\.ndjson$/.test(path);
  const records = isLines
    ? text
        .split("\n")
        .filter((line) => line.trim() !== "")
        .map((line, at) => parse(line, `${path}, line ${at + 1}`))
    : asList(parse(text, path));
  if (records.length === 1) return records[0];
  throw refused(path, `${path} has ${records.length} records.`, `Name one: ${path}:INSTANCE_ID`);
}

/** Data sets are large: lines are parsed only when they hold the id. */
async function recordOfLines(path: string, instance: string): Promise<unknown> {
  const input = createReadStream(path, "utf8");
  const needle = JSON.stringify(instance);
  let number = 0;
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      number += 1;
      if (!line.includes(needle)) continue;
      const record = parse(line, `${path}, line ${number}`);
      if (idOf(record) === instance) return record;
    }
  } finally {
    input.destroy();
  }
  return undefined;
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function idOf(record: unknown): unknown {
  if (typeof record !== "object" || record === null) return undefined;
  const { instance_id, instance, id } = record as Record<string, unknown>;
  return instance_id ?? instance ?? id;
}

function parse(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw refused(
      place,
      `${place} is no JSON: ${(error as Error).message}.`,
      "Give a JSON or JSONL file.",
      error,
    );
  }
}

function refused(source: string, message: string, fix: string, cause?: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_RECORD",
    message,
    fix,
    ...(cause === undefined ? {} : { cause }),
    detail: { field: "--record", source },
  });
}
