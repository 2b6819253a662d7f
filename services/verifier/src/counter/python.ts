/**
 * Owns finding tests of Python in a diff, and the assertions that can be altered.
 *
 * P1  Only a statement that is reached whenever the test passes: directly in its body, and nothing before it returns
 *     or skips. A body that yields is not run by being called, nor is a coroutine.
 * P2  Only tests for which a failure is a failure: neither decorators of theirs or their classes', nor marks of a
 *     module or of parameters, nor the test itself may expect one.
 * P3  Only assertions of unittest or of the language: not those a file defines anew.
 */
import type { Alteration, FoundTest, Random } from "./altered-test.js";
import type { ShownLine, Stretch } from "./hunks.js";
import { alterationsOf } from "./python-assertions.js";
import { type LogicalLine, logicalLines } from "./python-lines.js";
import { mayEqualSeveral } from "./tolerant.js";

const TEST = /^(?:async\s+)?def\s+(test\w*)\s*\(/;
const CLASS = /^class\s+(\w+)/;
const BLOCK = /^(?:async\s+)?(?:def|class)\b/;
/** Leave a failure a failure (P2). */
const HARMLESS =
  /^@(?:(?:pytest\.)?mark\.|(?:unittest\.)?(?:mock\.)?patch\b|(?:override|modify)_settings\b|isolate_apps\b|ignore_warnings\b|tag\b|parametrize\b|skipUnless|unittest\.skip|skipIf)/;
const LEAVES = /\b(?:return|raise|skip|skipTest|importorskip|exit)\b/;
const YIELDS = /\byield\b/;
const EXPECTS_FAILURE = /xfail|(?:expected|known|may|allow)_?fail/i;
/** A mark of a module or class. */
const MARKS = /^pytestmark\b/;
/** A name given a value, as `test_a = slow(test_a)`. */
const NAMED_ANEW = /^(test\w*)\s*=(?!=)/;
const ASSERTION_DEFINED = /^(?:def\s+)?(assert[A-Z]\w*)\s*[=(]/;
/** Where reading may begin, when what stands before it is the rest of something. */
const HEAD = /^\s*(?:def\s+test|class\s|@)/;

interface Open {
  readonly indent: number;
  readonly name: string;
  readonly isClass: boolean;
  /** Its decorators leave a failure a failure. */
  readonly isUsable: boolean;
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
  const own = ownAssertions(logical);
  const isMarked = logical.some(({ text, code }) => MARKS.test(code) && EXPECTS_FAILURE.test(text));
  let decorators: string[] = [];
  for (const [at, line] of logical.entries()) {
    while (open.length > 0 && open.at(-1)!.indent >= line.indent) open.pop();
    if (line.code.startsWith("@")) {
      decorators.push(line.text);
      continue;
    }
    const name = TEST.exec(line.code)?.[1] ?? NAMED_ANEW.exec(line.code)?.[1];
    const isUsable = decorators.every(isHarmless);
    if (name !== undefined && open.every(({ isClass }) => isClass)) {
      const isRun = !line.code.startsWith("async");
      const isAlterable = isRun && !isMarked && isUsable && open.every((outer) => outer.isUsable);
      found.push({
        path,
        scope: open.map((outer) => outer.name),
        name,
        alterations: isAlterable ? alterationsIn(logical, at, { lines, own, decorators, random }) : [],
      });
    }
    decorators = [];
    const outer = CLASS.exec(line.code)?.[1];
    if (BLOCK.test(line.code))
      open.push({ indent: line.indent, name: outer ?? "", isClass: outer !== undefined, isUsable });
  }
  return found;
}

function isHarmless(decorator: string): boolean {
  return HARMLESS.test(decorator) && !EXPECTS_FAILURE.test(decorator);
}

/** Methods of assertion the file defines itself: their contraries are not unittest's. */
function ownAssertions(logical: readonly LogicalLine[]): ReadonlySet<string> {
  return new Set(logical.flatMap(({ code }) => ASSERTION_DEFINED.exec(code)?.[1] ?? []));
}

interface Surroundings {
  readonly lines: readonly ShownLine[];
  readonly own: ReadonlySet<string>;
  readonly decorators: readonly string[];
  readonly random: Random;
}

function alterationsIn(
  logical: readonly LogicalLine[],
  head: number,
  { lines, own, decorators, random }: Surroundings,
): Alteration[] {
  const body = blockOf(logical, head);
  const all = [logical[head]!, ...body].map(({ code }) => code).join("\n");
  if (YIELDS.test(all) || EXPECTS_FAILURE.test(all)) return [];
  const isTolerant = mayEqualSeveral([...decorators, all].join("\n"));
  return reachedOf(body)
    .filter(({ code }) => !own.has(/^self\.(\w+)/.exec(code)?.[1] ?? ""))
    .flatMap((statement) => altered(statement, lines, random))
    .filter(({ kind }) => kind === "sense" || !isTolerant);
}

/** What stands in a block, whole. */
function blockOf(logical: readonly LogicalLine[], head: number): LogicalLine[] {
  const rest = logical.slice(head + 1);
  const end = rest.findIndex(({ indent }) => indent <= logical[head]!.indent);
  return end < 0 ? rest : rest.slice(0, end);
}

/** Statements that are surely reached (P1). */
function reachedOf(body: readonly LogicalLine[]): LogicalLine[] {
  const leaving = body.findIndex(({ code }) => LEAVES.test(code));
  return body
    .slice(0, leaving < 0 ? body.length : leaving)
    .filter(({ indent }) => indent === body[0]!.indent);
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
