/**
 * Owns what a body may not be, whoever reads it: nested so deep, or of so many values, that walking through it holds
 * a thread. Does not know what a body means.
 */
import type { BodyFault, BodyLimits } from "./worker-messages.js";

/** Also undefined for a body without fault. `parsed` is its JSON. */
export function bodyFault(parsed: unknown, { levels, values }: BodyLimits): BodyFault | undefined {
  let left = values;
  const isTooMuch = (value: unknown, deep: number): BodyFault | undefined => {
    if (left-- <= 0) return "too-many-values";
    if (typeof value !== "object" || value === null) return undefined;
    if (deep === 0) return "too-deep";
    if (Array.isArray(value)) {
      for (const inner of value) {
        const fault = isTooMuch(inner, deep - 1);
        if (fault) return fault;
      }
      return undefined;
    }
    for (const key in value) {
      const fault = isTooMuch((value as Record<string, unknown>)[key], deep - 1);
      if (fault) return fault;
    }
    return undefined;
  };
  return isTooMuch(parsed, levels);
}
