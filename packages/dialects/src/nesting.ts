/**
 * Owns how deep a request may be nested: what walks or serialises a value recursively, here and downstream,
 * must not be ended by its stack. Does not limit sizes; the front does.
 */
import { bad } from "./fields.js";

/** Far deeper than schemas and calls are, far from where recursion ends. */
const NESTING_LIMIT_LEVELS = 1000;

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST */
export function requireShallow(value: unknown, field: string): void {
  if (!isWithin(value, NESTING_LIMIT_LEVELS))
    throw bad(field, `is nested deeper than ${NESTING_LIMIT_LEVELS} levels`);
}

/** Plain loops: it visits every value of every body. */
function isWithin(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (levels === 0) return false;
  if (Array.isArray(value)) {
    for (const inner of value) if (!isWithin(inner, levels - 1)) return false;
    return true;
  }
  for (const key in value) if (!isWithin((value as Record<string, unknown>)[key], levels - 1)) return false;
  return true;
}
