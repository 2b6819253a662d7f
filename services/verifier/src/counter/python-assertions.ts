/**
 * Owns altering one assertion of Python: an `assert` statement, or a method of unittest. Does not know where it stands.
 */
import type { AlterationKind, Random } from "./altered-test.js";
import { closingOf, onlyTop, partsAtTop } from "./brackets.js";
import { type Change, COMMENT, otherValue } from "./literals.js";

export interface AlteredAssertion extends Change {
  readonly kind: AlterationKind;
}

const CONSTANTS = { True: "False", False: "True" };
const CONTRARY_OPERATORS: Readonly<Record<string, string>> = {
  "==": "!=",
  "!=": "==",
  "<": ">=",
  ">=": "<",
  ">": "<=",
  "<=": ">",
  in: "not in",
  "not in": "in",
  is: "is not",
  "is not": "is",
};
const OPERATOR = /==|!=|<=|>=|<|>|\bnot\s+in\b|\bis\s+not\b|\bin\b|\bis\b/g;
/** With these the rest of an expression is more than one comparison. */
const COMPOUND = /\b(?:and|or|if|else|lambda|for|yield|await|not)\b|:=/;
const PAIRS = [
  ["assertEqual", "assertNotEqual"],
  ["assertTrue", "assertFalse"],
  ["assertIs", "assertIsNot"],
  ["assertIsNone", "assertIsNotNone"],
  ["assertIn", "assertNotIn"],
  ["assertIsInstance", "assertNotIsInstance"],
  ["assertGreater", "assertLessEqual"],
  ["assertLess", "assertGreaterEqual"],
  ["assertAlmostEqual", "assertNotAlmostEqual"],
] as const;
const CONTRARY_METHODS: ReadonlyMap<string, string> = new Map([
  ...PAIRS.flatMap(
    ([one, other]) =>
      [
        [one, other],
        [other, one],
      ] as const,
  ),
  ["assertEquals", "assertNotEqual"],
]);
/** Compare their first two arguments for equality. */
const EQUALITIES = new Set([
  ...["assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertTupleEqual"],
  ...["assertSetEqual", "assertSequenceEqual", "assertMultiLineEqual"],
]);
const METHOD = /^self\.(assert\w+)\(/;

/** What makes a statement fail where it passed; none where it is no such assertion. Offsets are of the statement. */
export function alterationsOf(text: string, code: string, random: Random): AlteredAssertion[] {
  const end = code.search(new RegExp(`[${COMMENT}\\s]*$`));
  const [own, ownCode] = [text.slice(0, end), code.slice(0, end)];
  if (hasAtTop(ownCode, ";")) return [];
  const statement = /^assert\b\s*/.exec(ownCode);
  if (statement !== null) return ofStatement(own, ownCode, statement[0].length, random);
  const method = METHOD.exec(ownCode);
  return method === null ? [] : ofMethod(own, ownCode, method[1]!, random);
}

function ofStatement(text: string, code: string, start: number, random: Random): AlteredAssertion[] {
  const end = partsAtTop(code, start)[0]!.to;
  const top = onlyTop(code.slice(start, end));
  const not = /^not\b\s*/.exec(top);
  if (not !== null) {
    if (COMPOUND.test(top.slice(not[0].length))) return [];
    return [{ kind: "sense", from: start, to: start + not[0].length, text: "" }];
  }
  const operators = [...top.matchAll(OPERATOR)];
  const rest = top.replace(OPERATOR, (found) => " ".repeat(found.length));
  if (COMPOUND.test(rest) || operators.length > 1) return [];
  const [operator] = operators;
  if (operator === undefined) return [{ kind: "sense", from: start, to: start, text: "not " }];
  const from = start + operator.index;
  const to = from + operator[0].length;
  const contrary = CONTRARY_OPERATORS[operator[0].replace(/\s+/g, " ")]!;
  const sense: AlteredAssertion = { kind: "sense", from, to, text: contrary };
  if (operator[0] !== "==") return [sense];
  return [...valueIn(text, code, [to, end], random), ...valueIn(text, code, [start, from], random), sense];
}

function ofMethod(text: string, code: string, name: string, random: Random): AlteredAssertion[] {
  const open = code.indexOf("(");
  // Nothing may follow the call, and nothing of it may be a keyword or unpacked.
  if (closingOf(code, open) !== code.length - 1) return [];
  const parts = partsAtTop(code, open + 1, code.length - 1);
  if (parts.some(({ from, to }) => /^\s*\*|^\s*\w+\s*=(?!=)/.test(code.slice(from, to)))) return [];
  const values = EQUALITIES.has(name)
    ? [parts[1], parts[0]].flatMap((part) =>
        part === undefined ? [] : valueIn(text, code, [part.from, part.to], random),
      )
    : [];
  const contrary = CONTRARY_METHODS.get(name);
  const at = "self.".length;
  return [
    ...values,
    ...(contrary === undefined
      ? []
      : [{ kind: "sense" as const, from: at, to: at + name.length, text: contrary }]),
  ];
}

function valueIn(
  text: string,
  code: string,
  [from, to]: readonly [number, number],
  random: Random,
): AlteredAssertion[] {
  const change = otherValue(text.slice(from, to), code.slice(from, to), CONSTANTS, random);
  if (change === undefined) return [];
  return [{ kind: "value", from: from + change.from, to: from + change.to, text: change.text }];
}

function hasAtTop(code: string, char: string): boolean {
  return onlyTop(code).includes(char);
}
