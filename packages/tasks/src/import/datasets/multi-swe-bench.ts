/**
 * Owns Multi-SWE-bench and Multi-SWE-RL: pull requests of many languages with the tests they fix. Sources of
 * facts: multi-swe-bench/multi-swe-bench, harness/pull_request.py and dataset.py (columns), image.py (names of
 * images), report.py (which list a test is in) and the files below repos/ (evaluation/multi-swe-bench-commands.ts).
 *
 * The images hold both patches of their instance; a task's image is made from one without them.
 */
import { multiCommandOf } from "../evaluation/multi-swe-bench-commands.js";
import type { RowFields } from "../fields.js";
import type { Evaluation } from "../record.js";
import { isObject } from "../rows/row.js";
import { type Dataset, EVAL_SCRIPT, IMAGE } from "./dataset.js";

/** Tests that pass with the repair and did not without it: they failed, were skipped or were not there. */
const FIXED = ["f2p_tests", "s2p_tests", "n2p_tests"] as const;
const LANGUAGE = ["lang", "language"] as const;

export const multiSweBench: Dataset = {
  name: "multi-swe-bench",
  title: "Multi-SWE-bench, Multi-SWE-RL",
  columns: [
    ...["org", "number", "state", "title", "body", "base", "resolved_issues", "fix_patch", "tag", "lang"],
    ...["number_interval", "fixed_tests", "p2p_tests", ...FIXED, "hints"],
    ...["run_result", "test_patch_result", "fix_patch_result"],
  ],
  hasTestPatch: true,
  hasBaseCommit: true,
  patchMakesBug: false,
  recognises: (fields) => "org" in fields && "fix_patch" in fields,
  respell(fields) {
    const org = fields.required("org");
    const repo = fields.required("repo");
    const number = fields.required("number");
    return {
      instance_id: fields.text("instance_id") ?? `${org}__${repo}-${number}`,
      repo: `${org}/${repo}`,
      base_commit: shaOf(fields),
      patch: fields.required("fix_patch"),
      problem_statement: statementOf(fields),
      FAIL_TO_PASS: fixedOf(fields),
      PASS_TO_PASS: namesOf(fields, "p2p_tests"),
    };
  },
  read(fields, { repo }) {
    const [org = "", name = ""] = repo.split("/");
    const image =
      fields.text(IMAGE) ?? `mswebench/${org}_m_${name}:pr-${fields.required("number")}`.toLowerCase();
    const language = fields.text(LANGUAGE) ?? multiCommandOf(repo)?.language ?? fields.required(LANGUAGE);
    return {
      language: language.toLowerCase(),
      dockerfile: dockerfileOf(image),
      workdir: fields.text("workdir") ?? `/home/${name}`,
      ...howTested(fields, repo),
    };
  },
};

function shaOf(fields: RowFields): string {
  const { sha } = fields.object("base");
  if (typeof sha === "string" && sha !== "") return sha;
  if (fields.problems.every(({ field }) => field !== "base"))
    fields.refuse("base.sha", "is absent or empty", "Add the commit the pull request is based on.");
  return "";
}

/** The issues, title and text; the pull request's own words describe the repair and are not shown. */
function statementOf(fields: RowFields): string {
  const found = fields.find("resolved_issues")?.value;
  const issues = Array.isArray(found) ? found : [];
  const texts = issues.map((issue) => (isObject(issue) ? issueText(issue) : undefined));
  const told = texts.filter((text) => text !== undefined);
  if (told.length === 0 || told.length < texts.length)
    fields.refuse(
      "resolved_issues",
      "is no list of issues with a title",
      "Give the issues the pull request resolves, each with title and body.",
    );
  return told.join("\n\n");
}

function issueText({ title, body }: Record<string, unknown>): string | undefined {
  if (typeof title !== "string" || title.trim() === "") return undefined;
  return typeof body === "string" && body.trim() !== "" ? `${title}\n\n${body.trimEnd()}` : title;
}

/** A test stands in exactly one list, and `fixed_tests` is all three together. */
function fixedOf(fields: RowFields): string[] {
  const names = FIXED.flatMap((list) => namesOf(fields, list));
  const all = namesOf(fields, "fixed_tests");
  const isSame = all.length === names.length && all.every((name) => names.includes(name));
  if (fields.find("fixed_tests") !== undefined && !isSame)
    fields.refuse(
      "fixed_tests",
      `is not ${FIXED.join(", ")} together`,
      "Take the record from the data set again.",
    );
  if (names.length === 0)
    fields.refuse(
      "f2p_tests",
      "has no test, nor have s2p_tests and n2p_tests: doing nothing would resolve it",
      "Give the tests that pass with the repair alone.",
    );
  return names;
}

/** The keys of a group of tests; parquet files have every key of the file in each row, without a value. */
function namesOf(fields: RowFields, list: string): string[] {
  return Object.entries(fields.object(list)).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [name],
  );
}

/** The record's own script and parser, else what is known of the repository. */
function howTested(fields: RowFields, repo: string): { parser: string; evaluation: Evaluation } {
  const script = fields.text(EVAL_SCRIPT);
  const named = fields.text("log_parser");
  if (script !== undefined && named !== undefined)
    return { parser: named, evaluation: { kind: "script", text: script } };
  const command = multiCommandOf(repo);
  const variant = fields.text(["number_interval", "tag"]);
  if (command === undefined || variant !== undefined)
    fields.refuse(
      "eval_script",
      `or log_parser is absent, and how ${repo}${variant === undefined ? "" : ` (${variant})`} is tested and read is not known`,
      "Add eval_script and log_parser to the record.",
    );
  return {
    parser: command?.parser ?? "",
    evaluation: { kind: "built", prepare: [], install: [], test: ["bash /home/run.sh"], usesConda: false },
  };
}

/** The patches, and the script that applies both. */
function dockerfileOf(image: string): string {
  return `FROM ${image}\nRUN rm -f /home/fix.patch /home/test.patch /home/fix-run.sh\n`;
}
