/**
 * Owns finding tests of Python in a diff, and the assertions that can be altered.
 *
 * P1  Only a statement that is reached whenever the test passes: directly in its body, and nothing before it returns,
 *     yields or skips.
 * P2  Only tests whose decorators do not change what a failure means.
 */
import type { Alteration, FoundTest, Random } from "./altered-test.js";
import type { ShownLine, Stretch } from "./hunks.js";
import { alterationsOf } from "./python-assertions.js";
import { type LogicalLine, logicalLines } from "./python-lines.js";

const TEST = /^def\s+(test\w*)\s*\(/;
const CLASS = /^class\s+(\w+)/;
const BLOCK = /^(?:async\s+)?(?:def|class)\b/;
/** Leave a failure a failure (P2). */
const HARMLESS =
  /^@(?:(?:pytest\.)?mark\.(?!xfail)|(?:unittest\.)?(?:mock\.)?patch\b|override_settings\b|parametrize\b|skipUnless|unittest\.skip|skipIf)/;
const LEAVES = /\b(?:return|yield|raise|skip|skipTest|importorskip|exit)\b/;
/** Where reading may begin, when what stands before it is the rest of something. */
const HEAD = /^\s*(?:def\s+test|class\s|@)/;

interface Open {
  readonly indent: number;
  readonly name: string;
  readonly isClass: boolean;
}

export function pythonTests({ path, lines }: Stretch, random: Random): FoundTest[] {
  for (const start of [0, ...lines.keys()]) {
    if (start > 0 && !HEAD.test(lines[start]!.text)) continue;
    const rest = lines.slice(start);
    const logical = logicalLines(rest.map(({ text }) => text));
    if (logical !== undefined) return testsIn(path, rest, logical, random);
  }
  return [];
}

function testsIn(
  path: string,
  lines: readonly ShownLine[],
  logical: readonly LogicalLine[],
  random: Random,
): FoundTest[] {
  const found: FoundTest[] = [];
  const open: Open[] = [];
  let decorators: string[] = [];
  for (const [at, line] of logical.entries()) {
    while (open.length > 0 && open.at(-1)!.indent >= line.indent) open.pop();
    if (line.code.startsWith("@")) {
      decorators.push(line.text);
      continue;
    }
    const test = TEST.exec(line.code);
    const name = test?.[1] ?? CLASS.exec(line.code)?.[1];
    const isUsable = decorators.every((text) => HARMLESS.test(text));
    decorators = [];
    if (test !== null && isUsable && open.every(({ isClass }) => isClass))
      found.push({
        path,
        scope: open.map((outer) => outer.name),
        name: test[1]!,
        alterations: bodyOf(logical, at).flatMap((statement) => altered(statement, lines, random)),
      });
    if (BLOCK.test(line.code)) open.push({ indent: line.indent, name: name ?? "", isClass: test === null });
  }
  return found;
}

/** Statements that are surely reached (P1). */
function bodyOf(logical: readonly LogicalLine[], head: number): LogicalLine[] {
  const { indent } = logical[head]!;
  const body = logical[head + 1];
  const reached: LogicalLine[] = [];
  if (body === undefined || body.indent <= indent) return reached;
  for (const line of logical.slice(head + 1)) {
    if (line.indent < body.indent) break;
    if (LEAVES.test(line.code)) break;
    if (line.indent === body.indent) reached.push(line);
  }
  return reached;
}

function altered(statement: LogicalLine, lines: readonly ShownLine[], random: Random): Alteration[] {
  const own = lines.slice(statement.first, statement.last + 1);
  // What was there before the agent may have read.
  if (!own.every(({ isAdded }) => isAdded)) return [];
  return alterationsOf(statement.text, statement.code, random).flatMap(({ kind, from, to, text }) => {
    const before = statement.text.slice(0, from).split("\n");
    const line = own[before.length - 1]!;
    const column = before.at(-1)!.length + (before.length === 1 ? statement.indent : 0);
    const isOneLine = !statement.text.slice(from, to).includes("\n");
    return isOneLine ? [{ kind, line: line.at, from: column, to: column + (to - from), text }] : [];
  });
}
