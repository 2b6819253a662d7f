/**
 * Owns reading reports of failures only, numbered: Mocha's minimal reporter (ESLint), Jasmine (marked), Mocha in
 * a browser (p5.js). A test that is not named has passed, once the suite is proven to have run.
 */
import type { Observations } from "../../../results/observations.js";
import { linewise } from "../../line-parser.js";
import type { LogParser, ParserDefinition } from "../../types.js";
import { NumberedFailures } from "./numbered.js";

const JASMINE = /^\d+\)\s(.*)$/;
const NUMBER = /^\s*\d+\)/;
/** A name of p5.js ends at its first colon, within this many characters. */
const MAX_NAME_CHARACTERS = 1_000;

export const eslint: ParserDefinition = {
  name: "eslint",
  version: 1,
  reads: "Mocha's minimal reporter in ESLint",
  printsFailuresOnly: true,
  create: (into) => {
    const failures = new NumberedFailures((text) => into.tests.add(text, "failed"), "line");
    return { line: (line) => failures.line(line) };
  },
};

export const marked: ParserDefinition = {
  ...linewise({
    name: "marked",
    reads: "Jasmine in marked",
    startsWith: "0123456789",
    read: (_, raw) => {
      const failure = JASMINE.exec(raw);
      return failure === null ? undefined : [failure[1]!.trim(), "failed"];
    },
  }),
  printsFailuresOnly: true,
};

export const p5js: ParserDefinition = {
  name: "p5js",
  version: 1,
  reads: "Mocha in a browser in p5.js",
  printsFailuresOnly: true,
  create: (into) => new P5(into),
};

/** Suites and test stand on lines of growing indentation; objects printed between results are passed over. */
class P5 implements LogParser {
  readonly #into: Observations;
  #block: "object" | "list" | undefined;
  #names: string[] | undefined;
  #indent = 0;
  #characters = 0;

  constructor(into: Observations) {
    this.#into = into;
  }

  line(raw: string): void {
    const line = raw.trimEnd();
    if (this.#isInBlock(line)) return;
    const number = NUMBER.exec(raw);
    if (this.#names === undefined) {
      if (number === null) return;
      this.#names = [];
      this.#indent = 0;
      this.#characters = 0;
      this.#part(raw.slice(number[0].length));
    } else this.#part(raw);
  }

  #part(text: string): void {
    const colon = text.indexOf(":");
    const part = colon < 0 ? text : text.slice(0, colon);
    const indent = part.length - part.trimStart().length;
    this.#characters += part.length;
    if (indent <= this.#indent || this.#characters > MAX_NAME_CHARACTERS) {
      this.#names = undefined;
      return;
    }
    this.#indent = indent;
    this.#names!.push(part.trim());
    if (colon < 0) return;
    this.#into.tests.add(this.#names!.join(":"), "failed");
    this.#names = undefined;
  }

  #isInBlock(line: string): boolean {
    if (line.endsWith("{")) this.#block = "object";
    else if (line.endsWith("[")) this.#block = "list";
    else if (this.#block !== undefined) {
      if (line === (this.#block === "object" ? "}" : "]")) this.#block = undefined;
    } else return isPrinted(line, "{", "}") || isPrinted(line, "[", "]");
    return true;
  }
}

function isPrinted(line: string, open: string, close: string): boolean {
  return line.startsWith(open) && line.endsWith(close);
}
