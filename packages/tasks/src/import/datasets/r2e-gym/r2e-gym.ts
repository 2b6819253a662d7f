/**
 * Owns R2E-Gym (Subset, Lite, Full): commits of eleven projects with tests taken from them. Sources of facts:
 * R2E-Gym/R2E-Gym, repo_analysis/validate_docker_and_hf.py (columns), agenthub/runtime/docker.py (image, `/testbed`,
 * what is hidden from the agent) and the files named in results.ts, commit.ts and evaluation/r2e-gym-commands.ts.
 *
 * Its images hold the tests; a task's image is made from one without them, and they are put back from the record.
 * Its grader wants every test to end as expected, also those that are to fail; here those decide nothing.
 */
import { z } from "zod";
import { r2eCommandOf } from "../../evaluation/r2e-gym-commands.js";
import type { RowFields } from "../../fields.js";
import { patchAdding } from "../../patch/written-files.js";
import type { Dataset } from "../dataset.js";
import { type ParsedCommit, parsedCommit, repairOf } from "./commit.js";
import { expectedTests, readSummary } from "./results.js";

const execution = z.looseObject({
  test_file_codes: z.array(z.string()),
  test_file_names: z.array(z.string().regex(/^[\w-]+\.py$/)),
  new_commit_res_stdout: z.string(),
  old_commit_res_stdout: z.string(),
});
type Execution = z.infer<typeof execution>;

/** Of the image: tests, and what tells about them or about the repair. */
const HIDDEN = [
  ...["/r2e_tests", "r2e_tests", "run_tests.sh", "syn_issue.json", "expected_test_output.json"],
  ...["execution_result.json", "parsed_commit.json", "modified_files.json", "modified_entities.json"],
];

export const r2eGym: Dataset = {
  name: "r2e-gym",
  title: "R2E-Gym",
  columns: [
    ...["repo_name", "commit_hash", "parsed_commit_content", "execution_result_content"],
    ...["expected_output_json", "modified_files", "modified_entity_summaries", "relevant_files", "prompt"],
    ...["num_non_test_files", "num_non_test_func_methods", "num_non_test_lines"],
  ],
  hasTestPatch: true,
  hasBaseCommit: true,
  patchMakesBug: false,
  recognises: (fields) => "parsed_commit_content" in fields,
  respell(fields) {
    const project = fields.required("repo_name");
    const command = r2eCommandOf(project);
    if (project !== "" && command === undefined)
      fields.refuse(
        "repo_name",
        `is ${JSON.stringify(project.slice(0, 80))}: how it is tested is not known, or its records lack a file`,
        "Leave the record out.",
      );
    const commit = part(fields, "parsed_commit_content", parsedCommit);
    const run = part(fields, "execution_result_content", execution);
    return {
      instance_id: fields.text("instance_id") ?? `${project}-${fields.required("commit_hash")}`,
      repo: command?.repository ?? "",
      base_commit: commit?.old_commit_hash,
      created_at: commit?.commit_date,
      problem_statement: issueOf(fields.required("problem_statement")),
      patch: commit === undefined ? "" : repair(fields, commit),
      test_patch: run === undefined ? "" : tests(fields, run),
      ...(run === undefined ? {} : lists(fields, run)),
    };
  },
  read(fields) {
    const command = r2eCommandOf(fields.text("repo_name") ?? "");
    return {
      language: "python",
      dockerfile: dockerfileOf(fields.required("docker_image")),
      workdir: fields.text("workdir") ?? "/testbed",
      parser: "pytest",
      evaluation: {
        kind: "built",
        prepare: command?.prepare ?? [],
        install: [],
        test: command === undefined ? [] : [command.test],
        usesConda: false,
      },
    };
  },
};

/** One of the columns that hold an object as JSON. */
function part<T>(fields: RowFields, name: string, schema: z.ZodType<T>): T | undefined {
  if (fields.find(name) === undefined) {
    fields.required(name);
    return undefined;
  }
  const object = fields.object(name);
  if (fields.problems.some(({ field }) => field === name)) return undefined;
  const parsed = schema.safeParse(object);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  fields.refuse(
    [name, ...path].join("."),
    `is not as the data set has it: ${message}`,
    `Take ${name} from the data set again.`,
  );
  return undefined;
}

/** Written by a model between marks, where it was told to write them. */
function issueOf(statement: string): string {
  const marked = /\[ISSUE\]([\s\S]*)\[\/ISSUE\]/.exec(statement)?.[1]?.trim();
  return marked === undefined || marked === "" ? statement : marked;
}

function repair(fields: RowFields, commit: ParsedCommit): string {
  try {
    const patch = repairOf(commit);
    if (patch !== "") return patch;
    fields.refuse(
      "parsed_commit_content.file_diffs",
      "change no Python file that is no test",
      "Leave the record out.",
    );
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    fields.refuse("parsed_commit_content.file_diffs", `cannot be read: ${error.message}`, "Leave it out.");
  }
  return "";
}

/** The tests are a package: with it their names hold the directory. */
function tests(fields: RowFields, run: Execution): string {
  const { test_file_codes: codes, test_file_names: names } = run;
  const nOnce = new Set(names).size;
  if (nOnce < names.length)
    fields.refuse(
      "execution_result_content.test_file_names",
      `names ${names.length - nOnce} files twice, of which only one could be put in place`,
      "Leave the record out.",
    );
  if (codes.length === names.length && names.length > 0)
    return patchAdding(
      new Map([
        ["r2e_tests/__init__.py", ""],
        ...names.map((name, index): [string, string] => [`r2e_tests/${name}`, codes[index]!]),
      ]),
    );
  fields.refuse(
    "execution_result_content.test_file_codes",
    `has ${codes.length} files for ${names.length} names`,
    "Leave the record out.",
  );
  return "";
}

function lists(fields: RowFields, run: Execution): Readonly<Record<string, unknown>> {
  if (fields.find("expected_output_json") === undefined) fields.required("expected_output_json");
  const { failToPass, passToPass, unnamed } = expectedTests(
    fields.object("expected_output_json"),
    readSummary(run.old_commit_res_stdout),
    readSummary(run.new_commit_res_stdout),
  );
  if (unnamed.length > 0)
    fields.refuse(
      "expected_output_json",
      `has ${unnamed.length} tests that execution_result_content does not have, the first ${JSON.stringify(unnamed[0])}`,
      "Leave the record out.",
    );
  else if (failToPass.length === 0)
    fields.refuse(
      "expected_output_json",
      "has no test that passes with the repair alone: doing nothing would resolve it",
      "Leave the record out.",
    );
  return { FAIL_TO_PASS: failToPass, PASS_TO_PASS: passToPass };
}

function dockerfileOf(image: string): string {
  return `FROM ${image}\nWORKDIR /testbed\nRUN rm -rf ${HIDDEN.join(" ")}\n`;
}
