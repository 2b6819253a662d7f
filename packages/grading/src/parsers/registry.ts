/**
 * Owns finding a parser: by name, with or without version, and by repository. Does not know how one works.
 *
 * Names are those of the data sets without their prefix: `parse_log_pytest_v2` is `pytest-v2`. Some data sets
 * name parsers after a project; those are other names of the parser the project uses.
 */
import * as compiled from "./compiled/index.js";
import * as javascript from "./javascript/index.js";
import * as jvm from "./jvm/index.js";
import * as python from "./python/index.js";
import { REPOSITORY_PARSERS, UNMARKED_REPOSITORIES } from "./repositories.js";
import * as scripted from "./scripted/index.js";
import * as structured from "./structured/index.js";
import type { ParserDefinition } from "./types.js";

/** Every parser, by name. */
export const PARSERS: ReadonlyMap<string, ParserDefinition> = new Map(
  [python, javascript, jvm, compiled, scripted, structured]
    .flatMap((family) => Object.values(family) as ParserDefinition[])
    .map((parser) => [parser.name, parser] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1)),
);

/** Other names of parsers in data sets. */
export const PARSER_ALIASES: Readonly<Record<string, string>> = {
  astroid: "pytest",
  flask: "pytest",
  marshmallow: "pytest",
  pvlib: "pytest",
  pyvista: "pytest",
  sqlfluff: "pytest",
  xarray: "pytest",
  pydantic: "pytest",
  pydicom: "pytest-options",
  requests: "pytest-options",
  pylint: "pytest-options",
  astropy: "pytest-v2",
  scikit: "pytest-v2",
  sphinx: "pytest-v2",
  "pytest-pydantic": "pytest",
  "pytest-v3": "pytest",
  "pytest-nebo": "pytest-v2",
  unittest: "django",
  "scratch-gui": "carbon",
  prettier: "carbon",
  "react-pdf": "carbon",
  "lighthouse-jest": "carbon",
  emotion: "grommet",
  "plotly-js": "plotly",
  go: "gotest",
  "go-test": "gotest",
  rust: "cargo",
  "cargo-test": "cargo",
  junit: "junit-xml",
  "gradle-custom": "gradle",
  "micropython-test": "micropython",
  "rspec-transformed-json": "rspec-json",
};

/** What a choice of parser may depend on besides the name. */
export interface ParserChoice {
  readonly instance: string;
  readonly version: string;
}

/** `parse_log_pytest_v2` and `pytest-v2/1` → the parser; undefined when there is none, or not of that version. */
export function findParser(named: string, choice: ParserChoice): ParserDefinition | undefined {
  const [spelled = "", version] = named.split("/", 2);
  const name = spelled
    .replace(/^parse_(log_)?/, "")
    .replaceAll("_", "-")
    .toLowerCase();
  const parser = PARSERS.get(chosen(PARSER_ALIASES[name] ?? name, choice));
  return version === undefined || String(parser?.version) === version ? parser : undefined;
}

/** The parser of a repository of SWE-bench or SWE-Gym, whatever the case of its name. */
export function parserOfRepository(repo: string, choice: ParserChoice): ParserDefinition | undefined {
  const name = REPOSITORY_PARSERS.get(repo.toLowerCase());
  return name === undefined ? undefined : PARSERS.get(chosen(name, choice));
}

export function isUnmarkedRepository(repo: string): boolean {
  return UNMARKED_REPOSITORIES.has(repo.toLowerCase());
}

/** Name and version, as verdicts keep them. */
export function parserLabel({ name, version }: ParserDefinition): string {
  return `${name}/${version}`;
}

/** Four projects changed their test runner between instances. */
function chosen(name: string, { instance, version }: ParserChoice): string {
  const number = /-(\d+)$/.exec(instance)?.[1] ?? "";
  switch (name) {
    case "immutable-js":
      return number === "2005" ? "jest-json" : "jest";
    case "jekyll":
      return number === "8761" || number === "8771" ? "cucumber" : "minitest";
    case "next":
      return version === "1.27" ? "next-cypress" : "next-karma";
    case "lighthouse":
      if (["9.5", "10.0", "10.2"].includes(version)) return "lighthouse-mocha";
      return Number(version) >= 3 ? "carbon" : "mocha-json";
    default:
      return name;
  }
}
