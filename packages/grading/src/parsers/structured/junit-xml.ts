/**
 * Owns reading JUnit XML, as pytest, Gradle, Maven and most CI runners write it. A name is `class.name` as the
 * report has it, known also as `class::name`, as the bare name and as pytest's node id (`a/b/test_c.py::name`).
 */
import type { Observations } from "../../results/observations.js";
import type { LoggedStatus } from "../../results/status.js";
import type { LogParser, ParserDefinition } from "../types.js";
import { XmlTags } from "./xml-tags.js";

export const junitXml: ParserDefinition = {
  name: "junit-xml",
  version: 1,
  reads: "JUnit XML reports",
  create: (into) => new JunitXml(into),
};

const OUTCOMES: Readonly<Record<string, LoggedStatus>> = {
  failure: "failed",
  error: "error",
  skipped: "skipped",
  rerunFailure: "failed",
};

class JunitXml implements LogParser {
  readonly #into: Observations;
  readonly #tags: XmlTags;
  #names: readonly string[] | undefined;
  #status: LoggedStatus = "passed";

  constructor(into: Observations) {
    this.#into = into;
    this.#tags = new XmlTags({
      open: (name, attributes) => this.#open(name, attributes),
      close: (name) => this.#close(name),
    });
  }

  line(line: string): void {
    this.#tags.line(line);
  }

  #open(tag: string, attributes: ReadonlyMap<string, string>): void {
    if (tag === "testsuite" || tag === "testsuites") this.#into.isComplete = false;
    if (tag === "testcase") {
      this.#names = namesOf(attributes);
      this.#status = "passed";
    }
    const outcome = this.#names === undefined ? undefined : OUTCOMES[tag];
    if (outcome !== undefined)
      this.#status = outcome === "skipped" && attributes.get("type") === "pytest.xfail" ? "xfailed" : outcome;
  }

  #close(tag: string): void {
    if (tag === "testsuite" || tag === "testsuites") this.#into.isComplete = true;
    if (tag !== "testcase" || this.#names === undefined) return;
    for (const name of this.#names) this.#into.tests.add(name, this.#status);
    this.#names = undefined;
  }
}

function namesOf(attributes: ReadonlyMap<string, string>): readonly string[] {
  const name = attributes.get("name") ?? "";
  const className = attributes.get("classname") ?? "";
  if (name === "") return [];
  if (className === "") return [name];
  return [
    `${className}.${name}`,
    `${className}::${name}`,
    name,
    ...nodeIds(className, name, attributes.get("file")),
  ];
}

/** pytest writes `a.b.test_c.TestD`: where the file ends and the class starts is not said, so each way is a name. */
function nodeIds(className: string, name: string, file: string | undefined): readonly string[] {
  const parts = className.split(".");
  if (file !== undefined) {
    const classes = parts.slice(file.replace(/\.py$/, "").split("/").length);
    return [[file, ...classes, name].join("::")];
  }
  const first = parts.findIndex((part) => /^[A-Z]/.test(part));
  const files = first < 0 ? parts : parts.slice(0, first);
  const classes = first < 0 ? [] : parts.slice(first);
  return files.length === 0 ? [] : [[`${files.join("/")}.py`, ...classes, name].join("::")];
}
