/**
 * Owns reading JSON fields of a request: a value of the expected shape, or a refusal that names the field.
 * Does not know any protocol; what a field means is the dialects'.
 */
import { MortiseError } from "@mortise/contracts";

export type Json = Readonly<Record<string, unknown>>;

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST, as all readers here */
export function object(value: unknown, field: string): Json {
  if (isObject(value)) return value;
  throw bad(field, "is not an object");
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function array(value: unknown, field: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw bad(field, "is not an array");
}

/** An array that may be absent or null, which many clients write for "none". */
export function optionalArray(value: unknown, field: string): readonly unknown[] {
  return array(value ?? [], field);
}

export function string(value: unknown, field: string): string {
  if (typeof value === "string") return value;
  throw bad(field, value === undefined ? "is missing" : "is not a string");
}

export function nonEmptyString(value: unknown, field: string): string {
  const text = string(value, field);
  if (text === "") throw bad(field, "is empty");
  return text;
}

export function optionalNumber(value: unknown, field: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw bad(field, "is not a finite number");
}

/** Text of a value that a protocol expects as text: a string as it is, anything else as JSON. */
export function textOf(value: unknown, field: string): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value ?? {});
  } catch (cause) {
    throw bad(field, "is nested too deeply", cause);
  }
}

/** The refusal of a request. `what` continues the sentence that `field` begins. */
export function bad(field: string, what: string, cause?: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_BAD_REQUEST",
    message: `${field} ${what}.`,
    detail: { field },
    ...(cause !== undefined && { cause }),
  });
}
