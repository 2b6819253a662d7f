/**
 * Owns SWE-bench Pro. Sources of facts: scaleapi/SWE-bench_Pro-os, README.md (images), swe_bench_pro_eval.py
 * (columns, `/app`) and helper_code/create_problem_statement.py (what the agent is told).
 *
 * Its records do not say how the tests are run: a shell script and a Python program that reads its output lie in
 * that repository, two for each instance, and the files of the tests are taken from the history of the image, which
 * is not there when a task is graded here. So a record needs `eval_script` and `log_parser`, and is refused without.
 */
import type { RowFields } from "../fields.js";
import { type Dataset, EVAL_SCRIPT, IMAGE } from "./dataset.js";

export const sweBenchPro: Dataset = {
  name: "swe-bench-pro",
  title: "SWE-bench Pro",
  columns: [
    ...["requirements", "interface", "repo_language", "issue_specificity", "issue_categories"],
    ...["before_repo_set_cmd", "selected_test_files_to_run", "dockerhub_tag"],
  ],
  hasTestPatch: true,
  hasBaseCommit: true,
  patchMakesBug: false,
  recognises: (fields) => "dockerhub_tag" in fields || "selected_test_files_to_run" in fields,
  read(fields) {
    return {
      language: fields.required(["repo_language", "language"]).toLowerCase(),
      image: imageOf(fields),
      workdir: "/app",
      parser: ofRepository(fields, "log_parser", "names the parser of the tests' log"),
      evaluation: {
        kind: "script",
        text: ofRepository(fields, "eval_script", "puts the tests in place and runs them"),
      },
      statement: statementOf(fields),
    };
  },
};

function imageOf(fields: RowFields): string {
  const image = fields.text(IMAGE);
  if (image !== undefined) return image;
  const tag = fields.required("dockerhub_tag");
  if (tag !== "" && !/^\w[\w.-]{0,127}$/.test(tag))
    fields.refuse(
      "dockerhub_tag",
      `is no tag: ${JSON.stringify(tag.slice(0, 80))}`,
      "Give the tag alone, without a name.",
    );
  return `jefzda/sweap-images:${tag}`;
}

/** What the data set keeps outside its records. */
function ofRepository(fields: RowFields, name: "eval_script" | "log_parser", does: string): string {
  const text = fields.text(name === "eval_script" ? EVAL_SCRIPT : name);
  if (text === undefined)
    fields.refuse(
      name,
      "is absent: records of SWE-bench Pro do not say how tests are run and read",
      `Add ${name}, which ${does}; scaleapi/SWE-bench_Pro-os has the originals in run_scripts/<instance_id>.`,
    );
  return text ?? "";
}

/** The issue, what is required beyond it, and the names the tests use. */
function statementOf(fields: RowFields): string {
  const requirements = fields.text("requirements");
  const names = fields.text("interface");
  return [
    (fields.text("problem_statement") ?? "").trimEnd(),
    ...(requirements === undefined ? [] : [`Requirements:\n${requirements.trimEnd()}`]),
    ...(names === undefined ? [] : [`New interfaces introduced:\n${names.trimEnd()}`]),
  ].join("\n\n");
}
