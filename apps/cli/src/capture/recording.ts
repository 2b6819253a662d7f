/**
 * Owns reading a recording of a harness at the model API: one JSON object a line, each an event. Knows the
 * events' common fields; what a reply was is recorded-reply.ts's.
 */
import { readFileSync } from "node:fs";
import { MortiseError } from "@mortise/contracts";

export type Json = Readonly<Record<string, unknown>>;

export interface RecordedEvent {
  /** Names the request the event belongs to; kept as it is. */
  readonly id: string | number;
  /** `req`, `step`, `res`, `stub_error`, `client_closed_early`, `destroyed_before_headers`, … */
  readonly kind: string;
  readonly fields: Json;
  /** In the file, from 1. */
  readonly line: number;
}

/** Events of a call; others may stand beside them, and need not name one. */
const OF_A_CALL = /^(req|step|res|stub_error|client_closed_early|destroyed_before_headers)$/;

/**
 * The events of a recording that name a call, in file order.
 * @throws MortiseError MORTISE_OPERATOR_RECORDING naming file and line; system errors of the file itself
 */
export function readRecording(file: string): RecordedEvent[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((text, at) => (text.trim() === "" ? [] : (readEvent(file, text, at + 1) ?? [])));
}

export function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param what the fault, as a clause that goes on from file and line */
export function unreadable(file: string, line: number, what: string, cause?: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_RECORDING",
    message: `${file}:${line}: ${what}.`,
    cause,
    detail: { field: `${file}:${line}` },
  });
}

function readEvent(file: string, text: string, line: number): RecordedEvent | undefined {
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch (cause) {
    throw unreadable(file, line, "the line is not JSON", cause);
  }
  if (!isRecord(fields)) throw unreadable(file, line, "the line is not a JSON object");
  const { ev: kind, id } = fields;
  if (typeof kind !== "string") throw unreadable(file, line, "ev is not a string");
  if (id === undefined && !OF_A_CALL.test(kind)) return undefined;
  if (typeof id !== "string" && typeof id !== "number")
    throw unreadable(file, line, "id is neither a string nor a number");
  return { id, kind, fields, line };
}
