/** Owns altering tests of JavaScript and TypeScript: `it` and `test` with `expect` (Jest, Vitest, Chai) or `assert`. */
import type { BlockLanguage } from "./block-tests.js";
import { maskStrings } from "./block-tests.js";
import { closingOf, type Part, partsAtTop } from "./brackets.js";
import { type Change, otherValue } from "./literals.js";
import { mayEqualSeveral } from "./tolerant.js";

const CALLBACK = String.raw`,\s*(?:async\s*)?(?:function\s*\w*\s*)?\(?\w*\)?\s*(?:=>\s*)?\{$`;
const TEST = new RegExp(String.raw`^(?:it|test)\((["'\x60])([^"'\x60\\$]+)\1${CALLBACK}`);
const SUITE = new RegExp(String.raw`^(?:describe|suite|context)\((["'\x60])([^"'\x60\\$]+)\1${CALLBACK}`);
const CONSTANTS = { true: "false", false: "true" };
/** The matcher, behind its dot, and its arguments. Not after `not`, `resolves` or `rejects`. */
const EXPECT = /^(?:await\s+)?expect(\()/;
/** Come to nothing when nobody awaits them, or are refused behind `not`. */
const UNSURE = /\b(?:not|resolves|rejects|eventually|become|rejected\w*|fulfilled|\w*Snapshot)\b/;
const EQUALITY = /^\.(?:toBe|toEqual|toStrictEqual|to(?:\.be|\.deep)*\.(?:equals?|eql?))$/;
const CONTRARY: ReadonlyMap<string, string> = new Map([
  ["equal", "notEqual"],
  ["strictEqual", "notStrictEqual"],
  ["deepEqual", "notDeepEqual"],
  ["deepStrictEqual", "notDeepStrictEqual"],
]);

export const javascript: BlockLanguage = {
  test: (line) => TEST.exec(line)?.[2],
  suite: (line) => SUITE.exec(line)?.[2],
  leaves: /\b(?:return|skip|throw)\b/,
  alter: (line, _next, random) => {
    const code = maskStrings(line).replace(/;$/, "");
    return EXPECT.test(code) ? ofExpect(line, code, random) : ofAssert(line, code, random);
  },
};

type Alter = BlockLanguage["alter"];

function ofExpect(line: string, code: string, random: Parameters<Alter>[2]): ReturnType<Alter> {
  const opened = code.indexOf("(");
  const closed = closingOf(code, opened);
  const call = /^((?:\.\w+)+)\(/.exec(code.slice(closed + 1));
  if (closed < 0 || call === null || UNSURE.test(call[1]!)) return [];
  const matcher = closed + 1;
  const open = matcher + call[1]!.length;
  if (closingOf(code, open) !== code.length - 1) return [];
  // Behind the value Chai takes a message.
  const { from, to } = partsAtTop(code, open + 1, code.length - 1)[0]!;
  const isExact = EQUALITY.test(call[1]!) && !mayEqualSeveral(code);
  const value = isExact ? valueIn(line, code, { from, to }, random) : undefined;
  const isChai = call[1]!.startsWith(".to.");
  const at = isChai ? matcher + ".to".length : matcher;
  return [
    ...(value === undefined
      ? []
      : [
          {
            kind: "value" as const,
            from: from + value.from,
            to: from + value.to,
            text: value.text,
          },
        ]),
    { kind: "sense", from: at, to: at, text: ".not" },
  ];
}

function ofAssert(line: string, code: string, random: Parameters<Alter>[2]): ReturnType<Alter> {
  const called = /^assert\.(\w+)\(/.exec(code);
  const contrary = CONTRARY.get(called?.[1] ?? "");
  if (called === null || contrary === undefined) return [];
  const open = called[0].length - 1;
  if (closingOf(code, open) !== code.length - 1) return [];
  const [, expected] = partsAtTop(code, open + 1, code.length - 1);
  const isExact = expected !== undefined && !mayEqualSeveral(code);
  const value = isExact ? valueIn(line, code, expected, random) : undefined;
  const from = "assert.".length;
  return [
    ...(value === undefined || expected === undefined
      ? []
      : [
          {
            kind: "value" as const,
            from: expected.from + value.from,
            to: expected.from + value.to,
            text: value.text,
          },
        ]),
    { kind: "sense", from, to: from + called[1]!.length, text: contrary },
  ];
}

/** None where something is undefined: what has no such property equals it as well. */
function valueIn(
  line: string,
  code: string,
  { from, to }: Part,
  random: Parameters<Alter>[2],
): Change | undefined {
  const own = code.slice(from, to);
  return /\bundefined\b/.test(own) ? undefined : otherValue(line.slice(from, to), own, CONSTANTS, random);
}
