/**
 * Owns rows of JSON files: one object a line, one array of objects, or one object. Reads line by line where it
 * can, so that a file may be larger than memory.
 */
import { createReadStream } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { isObject, present, type Row, type RowSource } from "./row.js";

/** Enough to see whether the first line is a whole object; records are seldom a tenth of it. */
const FIRST_LINE_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

export function jsonRows(path: string): RowSource {
  return {
    name: path,
    rows: async function* () {
      if (await isOneObjectALine(path)) yield* lines(path);
      else yield* values(path);
    },
  };
}

/** A first line that is a whole object says so; in a file whose name says so, one that is cut off does too. */
async function isOneObjectALine(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(FIRST_LINE_BYTES), 0, FIRST_LINE_BYTES, 0);
    const start = buffer.subarray(0, bytesRead);
    const end = start.indexOf(NEWLINE);
    const line = start.subarray(0, end < 0 ? bytesRead : end);
    return isObject(parsed(line)) || (path.endsWith(".jsonl") && line.toString("latin1", 0, 1) === "{");
  } finally {
    await file.close();
  }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

async function* lines(path: string): AsyncIterable<Row> {
  let number = 0;
  for await (const bytes of linesOf(path)) {
    number++;
    const place = `${basename(path)}:${number}`;
    const text = decode(bytes, place).trim();
    if (text !== "") yield { place, fields: present(parseObject(text, place)) };
  }
}

/** The bytes between newlines; a character may be cut by a chunk, a line may not. */
async function* linesOf(path: string): AsyncIterable<Buffer> {
  let pending: Buffer[] = [];
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      yield Buffer.concat([...pending, chunk.subarray(start, end)]);
      pending = [];
      start = end + 1;
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
  if (pending.length > 0) yield Buffer.concat(pending);
}

async function* values(path: string): AsyncIterable<Row> {
  const name = basename(path);
  const text = decode(await readFile(path), name);
  if (text.trim() === "") throw malformed(name, "is empty");
  const value = parse(text, name);
  const rows = Array.isArray(value) ? value : [value];
  for (const [index, row] of rows.entries()) {
    const place = Array.isArray(value) ? `${name}[${index}]` : name;
    if (!isObject(row)) throw malformed(place, "is no JSON object");
    yield { place, fields: present(row) };
  }
}

function parseObject(text: string, place: string): Record<string, unknown> {
  const value = parse(text, place);
  if (!isObject(value)) throw malformed(place, "is no JSON object");
  return value;
}

function parse(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw malformed(place, "is not valid JSON", cause);
  }
}

function decode(bytes: Buffer, place: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw malformed(place, "is not valid UTF-8", cause);
  }
}

function malformed(place: string, what: string, cause?: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_SOURCE",
    message: `${place} ${what}.`,
    fix: "Give one JSON object a line, or one array of objects.",
    cause,
    detail: { source: place },
  });
}
