/** Owns altering tests of Go (`testing`, and testify's assertions) and of Rust (`assert_eq!`, `assert_ne!`). */
import { type BlockLanguage, maskStrings } from "./block-tests.js";
import { closingOf, onlyTop, type Part, partsAtTop } from "./brackets.js";
import { otherValue } from "./literals.js";
import { mayEqualSeveral } from "./tolerant.js";

type Alter = BlockLanguage["alter"];
type Altered = ReturnType<Alter>;
type Random = Parameters<Alter>[2];

const CONSTANTS = { true: "false", false: "true" };
const FAILS = /^(?:t|b)\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(/;
const TESTIFY = /^(?:assert|require)\.(Equal|NotEqual|True|False|Nil|NotNil|NoError|Error)\(/;
const TESTIFY_CONTRARY: ReadonlyMap<string, string> = new Map(
  [
    ["Equal", "NotEqual"],
    ["True", "False"],
    ["Nil", "NotNil"],
    ["NoError", "Error"],
  ].flatMap(([one, other]) => [
    [one!, other!],
    [other!, one!],
  ]),
);

export const go: BlockLanguage = {
  test: (line) => /^func (Test\w+)\(\w+ \*testing\.T\) \{$/.exec(line)?.[1],
  suite: () => undefined,
  leaves: /\breturn\b|\.Skip(?:f|Now)?\(|\bos\.Exit\b/,
  alter: (line, next, random) => {
    const code = maskStrings(line);
    const testify = TESTIFY.exec(code);
    if (testify !== null)
      return ofCall(line, code, { contrary: TESTIFY_CONTRARY, name: testify[1]! }, random);
    return code.startsWith("if ") && FAILS.test(next) ? ofCondition(line, code, random) : [];
  },
};

export const rust: BlockLanguage = {
  test: (line, before) => {
    const name = /^(?:pub )?fn (\w+)\(\)(?: -> .*)? \{$/.exec(line)?.[1];
    const attributes = attributesOf(before);
    const isTest = attributes.includes("#[test]");
    return isTest && !attributes.some((one) => /should_panic|ignore/.test(one)) ? name : undefined;
  },
  suite: () => undefined,
  leaves: /\breturn\b|\?;|\bexit\b/,
  alter: (line, _next, random) => {
    const code = maskStrings(line).replace(/;$/, "");
    const called = /^(assert_(?:eq|ne))!\(/.exec(code);
    const contrary = new Map([
      ["assert_eq", "assert_ne"],
      ["assert_ne", "assert_eq"],
    ]);
    return called === null ? [] : ofCall(line, code, { contrary, name: called[1]! }, random);
  },
};

function attributesOf(before: readonly string[]): string[] {
  const last = before.findLastIndex((line) => !line.startsWith("#[") && !line.startsWith("//"));
  return before.slice(last + 1);
}

interface Called {
  readonly name: string;
  readonly contrary: ReadonlyMap<string, string>;
}

function ofCall(line: string, code: string, { name, contrary }: Called, random: Random): Altered {
  const open = code.indexOf("(");
  if (closingOf(code, open) !== code.length - 1) return [];
  const parts = partsAtTop(code, open + 1, code.length - 1);
  const at = code.indexOf(name);
  // Behind the two values stands a message; testify has `t` before them.
  const compared = name === "Equal" ? parts.slice(1, 3) : parts.slice(0, 2);
  const isExact = (name === "Equal" || name === "assert_eq") && !mayEqualSeveral(code);
  const sense = { kind: "sense" as const, from: at, to: at + name.length, text: contrary.get(name)! };
  return [...(isExact ? compared.flatMap((part) => valueIn(line, code, part, random)) : []), sense];
}

/** `if got != want {` whose body fails the test. */
function ofCondition(line: string, code: string, random: Random): Altered {
  const condition = /^if (?:.*; )?(.*) \{$/.exec(code);
  if (condition === null) return [];
  const start = code.length - " {".length - condition[1]!.length;
  const top = onlyTop(condition[1]!);
  const operators = [...top.matchAll(/[!=]=/g)];
  if (operators.length !== 1 || /&&|\|\|/.test(top)) return [];
  const [operator] = operators as [RegExpExecArray];
  const from = start + operator.index;
  const right = { from: from + 2, to: code.length - " {".length };
  const isUnequal = operator[0] === "!=";
  return [
    ...(isUnequal && !mayEqualSeveral(code) ? valueIn(line, code, right, random) : []),
    { kind: "sense", from, to: from + 2, text: isUnequal ? "==" : "!=" },
  ];
}

function valueIn(line: string, code: string, { from, to }: Part, random: Random): Altered {
  const change = otherValue(line.slice(from, to), code.slice(from, to), CONSTANTS, random);
  if (change === undefined) return [];
  return [{ kind: "value", from: from + change.from, to: from + change.to, text: change.text }];
}
