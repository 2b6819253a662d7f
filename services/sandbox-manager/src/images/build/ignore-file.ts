/**
 * Owns `.dockerignore`: which paths of a context do not go to the builder. Patterns are Docker's: `*`, `?`, classes,
 * `**` over directories, `!` takes back, the last that fits decides, and what fits a directory fits all below it.
 */
import { MortiseError } from "@mortise/contracts";

interface Pattern {
  readonly isKept: boolean;
  readonly expression: RegExp;
}

/** Tells whether a path (relative, `/`-separated) is left out. Throws MORTISE_TASK_BUILD for a pattern that is none. */
export function ignoreRules(text: string): (path: string) => boolean {
  const patterns = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .flatMap((line, at) => patternOf(line, at + 1));
  return (path) => {
    let isIgnored = false;
    for (const { isKept, expression } of patterns) if (expression.test(path)) isIgnored = !isKept;
    return isIgnored;
  };
}

function patternOf(line: string, number: number): Pattern[] {
  if (line.startsWith("#")) return [];
  const trimmed = line.trim();
  const isKept = trimmed.startsWith("!");
  const segments = (isKept ? trimmed.slice(1).trim() : trimmed)
    .split("/")
    .filter((segment) => segment !== "" && segment !== ".");
  if (segments.length === 0) return [];
  try {
    return [{ isKept, expression: new RegExp(`^${expressionOf(segments)}(?:/|$)`, "su") }];
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_TASK_BUILD",
      message: `environment/.dockerignore, line ${number}: ${JSON.stringify(trimmed)} is no pattern.`,
      cause,
    });
  }
}

function expressionOf(segments: readonly string[]): string {
  let expression = "";
  for (const [at, segment] of segments.entries()) {
    const isLast = at === segments.length - 1;
    if (segment === "**") expression += isLast ? ".+" : "(?:[^/]+/)*";
    else expression += segmentExpression(segment) + (isLast ? "" : "/");
  }
  return expression;
}

function segmentExpression(segment: string): string {
  return segment.replace(/\*\*|\*|\?|\[\^?(?:\\.|[^\]\\])+\]|\\.|./gsu, (part) => {
    if (part === "**") return ".*";
    if (part === "*") return "[^/]*";
    if (part === "?") return "[^/]";
    if (part.length > 1 && part.startsWith("[")) return part;
    return literal(part.length > 1 && part.startsWith("\\") ? part.slice(1) : part);
  });
}

function literal(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
}
