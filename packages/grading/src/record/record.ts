/**
 * Owns reading a dataset record as far as grading needs it: which tests must pass, which parser reads the
 * log. Takes the spellings of the SWE-bench family; does not import data sets or run anything.
 */
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";
import { findParser, isUnmarkedRepository, parserOfRepository } from "../parsers/registry.js";
import type { ParserDefinition } from "../parsers/types.js";
import { readTestList } from "./test-list.js";

export interface GradingRecord {
  readonly instance: string;
  readonly repo: string;
  readonly version: string;
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  readonly parser: ParserDefinition;
  /** The harness of this data set marks where the output of the tests starts and ends. */
  readonly needsMarks: boolean;
  /** A test the log does not name has passed, once the suite is proven to have run. */
  readonly printsFailuresOnly: boolean;
}

const text = z.union([z.string(), z.number().transform(String)]);
const fields = z.looseObject({
  instance_id: text.optional(),
  repo: z.string().optional(),
  version: text.nullish(),
  log_parser: z.string().nullish(),
  eval_type: z.string().nullish(),
  install_config: z.unknown().optional(),
});
const INSTANCE_FIELDS = ["instance_id", "instance", "id"] as const;
const FAIL_TO_PASS_FIELDS = ["FAIL_TO_PASS", "fail_to_pass", "F2P", "failToPass"] as const;
const PASS_TO_PASS_FIELDS = ["PASS_TO_PASS", "pass_to_pass", "P2P", "passToPass"] as const;
const EVAL_TYPES = new Set(["pass_and_fail", "fail_only"]);

export interface RecordOptions {
  /** Parser to use instead of the record's, `name` or `name/version`. */
  readonly parser?: string;
}

/**
 * Reads a record of any data set of the family.
 * @param source where it came from, for the error
 * @throws MORTISE_TASK_RECORD naming the field and the fix
 */
export function readRecord(value: unknown, source: string, options: RecordOptions = {}): GradingRecord {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw refused(source, "record", "is not a JSON object", "Give one dataset record: a JSON object.");
  const parsed = fields.safeParse(value);
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!;
    throw refused(source, path.join("."), `is malformed: ${message}`);
  }
  const record = parsed.data as z.infer<typeof fields> & Record<string, unknown>;
  const instance = record[INSTANCE_FIELDS.find((name) => record[name] !== undefined) ?? ""];
  if (typeof instance !== "string" || instance === "")
    throw refused(source, "instance_id", "is absent", "Add the instance's id.");
  const { eval_type: evalType, repo = "" } = record;
  if (typeof evalType === "string" && evalType !== "" && !EVAL_TYPES.has(evalType))
    throw refused(source, "eval_type", `is "${evalType}"`, 'Use "pass_and_fail" or "fail_only".');
  const parser = parserOf(record, instance, source, options);
  return {
    instance,
    repo,
    version: record.version ?? "",
    failToPass: testsOf(record, FAIL_TO_PASS_FIELDS, source),
    passToPass: testsOf(record, PASS_TO_PASS_FIELDS, source),
    parser,
    needsMarks: nameOfParser(record, options) === undefined && !isUnmarkedRepository(repo),
    printsFailuresOnly: evalType === "fail_only" || (!evalType && parser.printsFailuresOnly === true),
  };
}

function testsOf(
  record: Record<string, unknown>,
  names: readonly string[],
  source: string,
): readonly string[] {
  const name = names.find((candidate) => record[candidate] !== undefined);
  if (name === undefined)
    throw refused(
      source,
      names[0]!,
      "is absent",
      `Add ${names[0]}: a JSON list of test names, or that list as text.`,
    );
  const tests = readTestList(record[name]);
  if (tests === undefined)
    throw refused(
      source,
      name,
      "is no list of test names",
      "Give a JSON list of strings, or that list as text.",
    );
  return tests;
}

function parserOf(
  record: Record<string, unknown>,
  instance: string,
  source: string,
  options: RecordOptions,
): ParserDefinition {
  const named = nameOfParser(record, options);
  const context = { instance, version: String(record.version ?? "") };
  if (named !== undefined) {
    const parser = findParser(named, context);
    if (parser !== undefined) return parser;
    throw refused(
      source,
      options.parser === undefined ? "log_parser" : "parser",
      `names no parser: "${named}"`,
      FIX_PARSER,
    );
  }
  const repo = typeof record.repo === "string" ? record.repo : "";
  const parser = parserOfRepository(repo, context);
  if (parser !== undefined) return parser;
  throw refused(source, "repo", repo === "" ? "is absent" : `has no known parser: "${repo}"`, FIX_PARSER);
}

const FIX_PARSER = "Name a parser in log_parser; docs/grading.md lists them.";

function nameOfParser(record: Record<string, unknown>, options: RecordOptions): string | undefined {
  const config =
    typeof record.install_config === "string" ? fromJson(record.install_config) : record.install_config;
  const nested =
    typeof config === "object" && config !== null
      ? (config as Record<string, unknown>).log_parser
      : undefined;
  return [options.parser, record.log_parser, nested].find(
    (name): name is string => typeof name === "string" && name !== "",
  );
}

function fromJson(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

function refused(source: string, field: string, what: string, fix?: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_RECORD",
    message: `${source}: ${field} ${what}.`,
    ...(fix === undefined ? {} : { fix }),
    detail: { field, source },
  });
}
