/**
 * Owns finding tests of languages whose bodies stand in braces, by the indentation formatters give them: head, body
 * and end. Each language says what a head is and how a statement is altered.
 *
 * B1  Only a statement that is reached whenever the test passes: at the indentation of the body, and nothing before it
 *     leaves the test or opens a comment or text of several lines, in which a line may be anything.
 */
import type { Alteration, FoundTest, Random } from "./altered-test.js";
import type { ShownLine, Stretch } from "./hunks.js";
import { type Change, STRING } from "./literals.js";

export interface BlockLanguage {
  /** The name of the test a line begins. `before` are the lines directly above. */
  readonly test: (line: string, before: readonly string[]) => string | undefined;
  /** The name of what holds tests, where a line begins it. */
  readonly suite: (line: string) => string | undefined;
  /** What leaves a test without failing it. */
  readonly leaves: RegExp;
  /** What makes a statement fail where it passed; offsets are of the line without its indentation. */
  readonly alter: (
    line: string,
    next: string,
    random: Random,
  ) => readonly (Change & Pick<Alteration, "kind">)[];
}

export function blockTests({ path, lines }: Stretch, language: BlockLanguage, random: Random): FoundTest[] {
  const found: FoundTest[] = [];
  const suites: { readonly indent: number; readonly name: string }[] = [];
  for (const [at, { text }] of lines.entries()) {
    if (text.trim() === "") continue;
    const indent = indentOf(text);
    while (suites.length > 0 && suites.at(-1)!.indent >= indent) suites.pop();
    const suite = language.suite(text.trim());
    if (suite !== undefined) suites.push({ indent, name: suite });
    const before = lines.slice(Math.max(0, at - 5), at).map((line) => line.text.trim());
    const name = language.test(text.trim(), before);
    if (name === undefined) continue;
    const alterations = bodyOf(lines, at, language.leaves).flatMap((index) =>
      altered(lines, index, language, random),
    );
    found.push({ path, scope: suites.map((one) => one.name), name, alterations });
  }
  return found;
}

function bodyOf(lines: readonly ShownLine[], head: number, leaves: RegExp): number[] {
  const outer = indentOf(lines[head]!.text);
  const reached: number[] = [];
  let inner: number | undefined;
  for (let at = head + 1; at < lines.length; at++) {
    const { text } = lines[at]!;
    if (text.trim() === "") continue;
    const indent = indentOf(text);
    inner ??= indent;
    if (indent <= outer || indent < inner || leaves.test(text) || staysOpen(text)) break;
    if (indent === inner) reached.push(at);
  }
  return reached;
}

function altered(
  lines: readonly ShownLine[],
  index: number,
  { alter }: BlockLanguage,
  random: Random,
): Alteration[] {
  const { text, isAdded, at } = lines[index]!;
  if (!isAdded) return [];
  const indent = indentOf(text);
  const next = lines[index + 1]?.text.trim() ?? "";
  return alter(text.trim(), next, random).map(({ kind, from, to, text: other }) => ({
    kind,
    line: at,
    from: from + indent,
    to: to + indent,
    text: other,
  }));
}

function indentOf(text: string): number {
  return text.length - text.trimStart().length;
}

/** A comment, or a text, that does not end on its line; a line that cannot be told from one counts. */
function staysOpen(text: string): boolean {
  const code = maskStrings(text).replace(/\/\*.*?\*\//g, "");
  return /\/\*|["`]/.test(code.replace(/(?<!:)\/\/.*$/, ""));
}

const PLAIN = /"[^"\\\n]*"|'[^'\\\n]*'|`[^`\\$\n]*`/g;

/** Simple strings masked, as `otherValue` wants it. */
export function maskStrings(text: string): string {
  return text.replace(PLAIN, (found) => STRING.repeat(found.length));
}
