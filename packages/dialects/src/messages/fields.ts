/**
 * Owns reading JSON of unknown shape: each reader returns the expected type or refuses by the field's name.
 * Knows no protocol.
 */
import { MortiseError } from "@mortise/contracts";

export type Json = Readonly<Record<string, unknown>>;

/** Far deeper than schemas and calls are, and far from where walking or serialising a value ends the stack. */
const NESTING_LIMIT_LEVELS = 1000;

export function bad(field: string, what: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_BAD_REQUEST",
    message: `${field} ${what}.`,
    detail: { field },
  });
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function readObject(value: unknown, field: string): Json {
  if (isObject(value)) return value;
  throw bad(field, "is not an object");
}

/** Absent and null are the empty list. */
export function readArray(value: unknown, field: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value;
  throw bad(field, "is not an array");
}

export function readName(value: unknown, field: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw bad(field, "is not a non-empty string");
}

/** Absent and null are undefined. */
export function readNumber(value: unknown, field: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw bad(field, "is not a finite number");
}

/** Refuses what cannot be walked or serialised safely. */
export function requireShallow(value: unknown, field: string): void {
  if (isWithin(value, NESTING_LIMIT_LEVELS)) return;
  throw bad(field, `is nested deeper than ${NESTING_LIMIT_LEVELS} levels`);
}

function isWithin(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (levels === 0) return false;
  return Object.values(value).every((inner) => isWithin(inner, levels - 1));
}
