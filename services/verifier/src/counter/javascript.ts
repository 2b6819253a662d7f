/** Owns altering tests of JavaScript and TypeScript: `it` and `test` with `expect` (Jest, Vitest, Chai) or `assert`. */
import type { BlockLanguage } from "./block-tests.js";
import { maskStrings } from "./block-tests.js";
import { closingOf, partsAtTop } from "./brackets.js";
import { otherValue } from "./literals.js";

const CALLBACK = String.raw`,\s*(?:async\s*)?(?:function\s*\w*\s*)?\(?\w*\)?\s*(?:=>\s*)?\{$`;
const TEST = new RegExp(String.raw`^(?:it|test)\((["'\x60])([^"'\x60\\$]+)\1${CALLBACK}`);
const SUITE = new RegExp(String.raw`^(?:describe|suite|context)\((["'\x60])([^"'\x60\\$]+)\1${CALLBACK}`);
const CONSTANTS = { true: "false", false: "true" };
/** The matcher, behind its dot, and its arguments. Not after `not`, `resolves` or `rejects`. */
const EXPECT = /^(?:await\s+)?expect(\()/;
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
  if (closed < 0 || call === null || /\b(?:not|resolves|rejects)\b/.test(call[1]!)) return [];
  const matcher = closed + 1;
  const open = matcher + call[1]!.length;
  if (closingOf(code, open) !== code.length - 1) return [];
  const value = EQUALITY.test(call[1]!)
    ? otherValue(line.slice(open + 1, code.length - 1), code.slice(open + 1, -1), CONSTANTS, random)
    : undefined;
  const isChai = call[1]!.startsWith(".to.");
  const at = isChai ? matcher + ".to".length : matcher;
  return [
    ...(value === undefined
      ? []
      : [
          {
            kind: "value" as const,
            from: open + 1 + value.from,
            to: open + 1 + value.to,
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
  const value =
    expected === undefined
      ? undefined
      : otherValue(
          line.slice(expected.from, expected.to),
          code.slice(expected.from, expected.to),
          CONSTANTS,
          random,
        );
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
