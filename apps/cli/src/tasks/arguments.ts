/** Owns reading numbers, ranges and dates of the `tasks` commands. */
import type { Range, TaskSource } from "@mortise/tasks/selection";
import { InvalidArgumentError } from "commander";

export function count(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0 && text.trim() !== "") return value;
  throw new InvalidArgumentError("A whole number is needed.");
}

export function atLeastOne(text: string): number {
  const value = count(text);
  if (value > 0) return value;
  throw new InvalidArgumentError("At least 1 is needed.");
}

export function positive(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError("A number above 0 is needed.");
}

/** `a..b`, `a..` or `..b`; both bounds belong to it. */
export function range(text: string): Range {
  const [, low = "", high = ""] = /^(\d*\.?\d*)\.\.(\d*\.?\d*)$/.exec(text) ?? [];
  const [min, max] = [low, high].map((bound) => (bound === "" ? undefined : Number(bound)));
  const isEmpty = (min === undefined && max === undefined) || (min ?? 0) > (max ?? Infinity);
  if (isEmpty || Number.isNaN(min) || Number.isNaN(max))
    throw new InvalidArgumentError("A range is needed: a..b, a.. or ..b.");
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
}

export function day(text: string): string {
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(Date.parse(text))) return text;
  throw new InvalidArgumentError("A date is needed: 2024-01-31.");
}

export function list(text: string): ReadonlySet<string> {
  return new Set(text.split(",").map((name) => name.trim().toLowerCase()));
}

/** `path`, or `path=weight`. */
export function taskSource(text: string): TaskSource {
  const [, path = text, weight] = /^(.+)=([0-9.]+)$/.exec(text) ?? [];
  return weight === undefined ? { path } : { path, weight: positive(weight) };
}

/** For an option that may be given several times. */
export function collected(value: string, earlier: readonly string[]): readonly string[] {
  return [...earlier, value];
}
