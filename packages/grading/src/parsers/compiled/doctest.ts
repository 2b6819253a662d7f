/**
 * Owns reading doctest (C++) run with `-s -r=xml`: a result for each sub-case, `Test case > sub-case`, passed
 * when none of its expressions failed.
 */
import type { Observations } from "../../results/observations.js";
import { XmlTags } from "../structured/xml-tags.js";
import type { ParserDefinition } from "../types.js";

interface SubCase {
  readonly name: string;
  hasFailed: boolean;
}

export const doctest: ParserDefinition = {
  name: "doctest",
  version: 1,
  reads: "doctest (C++), XML reporter",
  create: (into) => {
    const reader = new DoctestReader(into);
    const tags = new XmlTags(reader);
    return { line: (line) => tags.line(line) };
  },
};

class DoctestReader {
  readonly #into: Observations;
  readonly #open: SubCase[] = [];
  #testCase = "";

  constructor(into: Observations) {
    this.#into = into;
  }

  open(tag: string, attributes: ReadonlyMap<string, string>): void {
    if (tag === "doctest") this.#into.isComplete = false;
    else if (tag === "TestCase") this.#testCase = attributes.get("name") ?? "";
    else if (tag === "SubCase")
      this.#open.push({ name: `${this.#testCase} > ${attributes.get("name") ?? ""}`, hasFailed: false });
    else if (tag === "Expression" && attributes.get("success") !== "true")
      for (const subCase of this.#open) subCase.hasFailed = true;
  }

  close(tag: string): void {
    if (tag === "doctest") this.#into.isComplete = true;
    else if (tag === "TestCase") this.#open.length = 0;
    if (tag !== "SubCase") return;
    const subCase = this.#open.pop();
    if (subCase !== undefined) this.#into.tests.add(subCase.name, subCase.hasFailed ? "failed" : "passed");
  }
}
