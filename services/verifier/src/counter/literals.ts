/**
 * Owns other values for literals: of code whose strings were masked, whether it is made of literals alone, and one
 * change that makes it another value. The same for all languages; each says what its constants are called.
 */
import type { Random } from "./altered-test.js";

/** Stands for each character of a plain string, its quotes included. */
export const STRING = "\u0001";
/** Stands for each character of a comment. */
export const COMMENT = "\u0002";
/** Stands for each character of a string that holds code. */
export const TEMPLATE = "\u0003";

export interface Change {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

const NUMBER = /(?<![\w.])\d+(?:\.\d+)?(?![\w.])/g;
const STRINGS = new RegExp(`${STRING}+`, "g");
const PLAIN_STRING = /^(["'])([^"'\\\n]*)\1$/;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";

/**
 * A change that makes an expression another value; undefined where it is more than literals, brackets and commas.
 * `code` is `text` with its strings masked; offsets are of both.
 */
export function otherValue(
  text: string,
  code: string,
  constants: Readonly<Record<string, string>>,
  random: Random,
): Change | undefined {
  const names = Object.keys(constants);
  const rest = code
    .replace(new RegExp(`\\b(?:${[...names, "None", "null", "undefined", "nil"].join("|")})\\b`, "g"), " ")
    .replace(/(?<![\w.])[A-Za-z_$][\w$]*\s*:(?!:)/g, " ")
    .replace(NUMBER, " ");
  // A bracket behind a value takes a part of it, which the change may not be in.
  if (!new RegExp(`^[\\s${STRING}()[\\]{},:-]*$`).test(rest)) return undefined;
  if (new RegExp(`[\\])}${STRING}]\\s*[[(]`).test(code)) return undefined;
  const changes = [
    ...[...code.matchAll(NUMBER)].map(({ 0: number, index }) => otherNumber(number, index, random)),
    ...[...code.matchAll(STRINGS)].flatMap(({ 0: found, index }) =>
      otherString(text.slice(index, index + found.length), index, random),
    ),
    ...names.flatMap((name) =>
      [...code.matchAll(new RegExp(`\\b${name}\\b`, "g"))].map(({ index }) => ({
        from: index,
        to: index + name.length,
        text: constants[name]!,
      })),
    ),
  ];
  return changes[random(Math.max(1, changes.length))];
}

/** A smaller one, unless it is 0: a larger one need not fit what it is compared with. */
function otherNumber(number: string, index: number, random: Random): Change {
  const [whole = "0", fraction] = number.split(".");
  const size = BigInt(whole);
  const other = String(size === 0n ? 1 + random(9) : size - BigInt(1 + random(size < 9n ? Number(size) : 9)));
  return {
    from: index,
    to: index + number.length,
    text: fraction === undefined ? other : `${other}.${fraction}`,
  };
}

/** One letter more, at some place: looks like any other text. */
function otherString(literal: string, index: number, random: Random): Change[] {
  const content = PLAIN_STRING.exec(literal)?.[2];
  if (content === undefined) return [];
  const at = index + 1 + random(content.length + 1);
  return [{ from: at, to: at, text: LETTERS[random(LETTERS.length)]! }];
}
