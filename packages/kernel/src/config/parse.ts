/**
 * Owns the refusal of a bad configuration: which field, what was given, what is allowed, and for a key nobody
 * knows the nearest one that exists. Does not contain any schema.
 */
import { MortiseError } from "@mortise/contracts";
import type { z } from "zod";
import { keysAt } from "./schema-keys.js";

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/**
 * Validates `value` and returns it with defaults filled in.
 * @param source what the value was read from, for the message: a file path or "command line".
 * Throws MORTISE_CONFIG_UNKNOWN_KEY or MORTISE_CONFIG_INVALID; every problem found is in the message.
 */
export function parseStrict<S extends z.ZodType>(
  schema: S,
  value: unknown,
  options: { source: string },
): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.flatMap((issue) => innermost(issue));
  const problems = issues.map((issue) => describeIssue(schema, value, issue));
  const isUnknownKey = issues[0]?.code === "unrecognized_keys";
  throw new MortiseError({
    code: isUnknownKey ? "MORTISE_CONFIG_UNKNOWN_KEY" : "MORTISE_CONFIG_INVALID",
    message: `${options.source}: ${problems.join("; ")}.`,
    detail: { source: options.source, field: fieldOf(issues[0]) },
  });
}

/** A union reports one list of issues per option; what fits best knows the keys that are there, and has the fewest. */
function innermost(issue: Issue, prefix: Path = []): Issue[] {
  const path = [...prefix, ...issue.path];
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    const [best] = [...issue.errors].sort((a, b) => nUnknown(a) - nUnknown(b) || a.length - b.length);
    return best!.flatMap((inner) => innermost(inner, path));
  }
  return [{ ...issue, path } as Issue];
}

function nUnknown(issues: readonly Issue[]): number {
  return issues.reduce((n, issue) => n + (issue.code === "unrecognized_keys" ? issue.keys.length : 0), 0);
}

function fieldOf(issue: Issue | undefined): string {
  if (issue === undefined) return "";
  const path = issue.code === "unrecognized_keys" ? [...issue.path, issue.keys[0] ?? ""] : issue.path;
  return dotted(path);
}

function describeIssue(schema: z.ZodType, value: unknown, issue: Issue): string {
  if (issue.code === "unrecognized_keys") {
    const known = keysAt(schema, issue.path, value);
    return issue.keys.map((key) => describeUnknownKey(dotted([...issue.path, key]), key, known)).join("; ");
  }
  const given = valueAt(value, issue.path);
  const shown = given === undefined ? "is missing" : `= ${JSON.stringify(given)}`;
  return `${dotted(issue.path) || "(top level)"} ${shown}: ${issue.message}${nearestValue(issue, given)}`;
}

/** For a name that is nearly one of those allowed. */
function nearestValue(issue: Issue, given: unknown): string {
  if (issue.code !== "invalid_value" || typeof given !== "string") return "";
  const nearest = nearestName(given, issue.values.map(String));
  return nearest === undefined ? "" : `; did you mean ${nearest}?`;
}

function describeUnknownKey(path: string, key: string, known: readonly string[]): string {
  const nearest = nearestName(key, known);
  if (nearest !== undefined) return `unknown key ${path}; did you mean ${nearest}?`;
  return `unknown key ${path}; valid keys here: ${[...known].sort().join(", ") || "none"}`;
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (here, key) =>
      typeof here === "object" && here !== null ? (here as Record<PropertyKey, unknown>)[key] : undefined,
    value,
  );
}

function dotted(path: Path): string {
  return path.map(String).join(".");
}

/** The known name with the smallest edit distance, unless more than half of the letters would have to change. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.floor(Math.max(3, name.length) / 2) + 1;
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
