/**
 * Owns cutting Python text into logical lines: what stands between two line ends that are in no bracket and no string.
 * Does not know what they mean.
 */
import { COMMENT, STRING, TEMPLATE } from "./literals.js";

export interface LogicalLine {
  /** Columns before the first character. */
  readonly indent: number;
  /** From the first character; holds line ends where it goes on. */
  readonly text: string;
  /** The text, strings and comments masked. */
  readonly code: string;
  /** Of the lines given. */
  readonly first: number;
  readonly last: number;
}

const PREFIX = /(?<![\w])([rRbBuUfFtT]{0,2})$/;
const OPENING = "([{";
const CLOSING = ")]}";

/** Undefined where the text ends within a string or bracket: then nobody knows what of it was code. */
export function logicalLines(lines: readonly string[]): LogicalLine[] | undefined {
  const text = lines.join("\n");
  const masked = mask(text);
  if (masked === undefined) return undefined;
  const found: LogicalLine[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at <= text.length; at++) {
    const char = masked[at];
    if (char !== undefined && OPENING.includes(char)) depth++;
    else if (char !== undefined && CLOSING.includes(char)) depth--;
    if (depth < 0) return undefined;
    const isEnd = at === text.length || (text[at] === "\n" && char === "\n");
    if (!isEnd || (depth > 0 && at < text.length) || masked[at - 1] === "\\") continue;
    if (depth > 0) return undefined;
    const own = text.slice(start, at);
    const indent = own.length - own.trimStart().length;
    const code = masked.slice(start + indent, at);
    if (code.replaceAll(COMMENT, "").trim() !== "") {
      const first = text.slice(0, start).split("\n").length - 1;
      const skipped = own.slice(0, indent).split("\n");
      found.push({
        indent: skipped.at(-1)!.length,
        text: own.slice(indent),
        code,
        first: first + skipped.length - 1,
        last: first + own.split("\n").length - 1,
      });
    }
    start = at + 1;
  }
  return found;
}

/** Strings and comments masked, character by character; undefined when the text ends within a string. */
function mask(text: string): string | undefined {
  const out: string[] = [];
  let at = 0;
  while (at < text.length) {
    const char = text[at]!;
    if (char === "#") {
      const end = text.indexOf("\n", at);
      const to = end < 0 ? text.length : end;
      out.push(COMMENT.repeat(to - at));
      at = to;
    } else if (char === '"' || char === "'") {
      const end = stringEnd(text, at);
      if (end === undefined) return undefined;
      const prefix = PREFIX.exec(text.slice(Math.max(0, at - 3), at))?.[1] ?? "";
      const sign = /[ft]/i.test(prefix) ? TEMPLATE : STRING;
      out.push(sign.repeat(end - at));
      at = end;
    } else {
      out.push(char);
      at++;
    }
  }
  return out.join("");
}

/** Behind the closing quotes; undefined where they do not come. */
function stringEnd(text: string, start: number): number | undefined {
  const quote = text[start]!;
  const isTriple = text.startsWith(quote.repeat(3), start);
  const closing = isTriple ? quote.repeat(3) : quote;
  for (let at = start + closing.length; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text.startsWith(closing, at)) return at + closing.length;
    else if (text[at] === "\n" && !isTriple) return undefined;
  }
  return undefined;
}
