/**
 * Owns SWE-bench, Verified, Lite and what has its columns, up to version 5, whose records bring image, script and
 * parser. Sources of facts: the data set's card and the `swebench` package 4.0.3 and 5.0.2.
 */

import { directivesOf } from "../evaluation/directives.js";
import { testCommandOf } from "../evaluation/swe-bench-commands.js";
import type { RowFields } from "../fields.js";
import type { Evaluation } from "../record.js";
import { type Dataset, EVAL_SCRIPT, IMAGE, imageNamedAfter, type SharedPart } from "./dataset.js";

export const sweBench: Dataset = {
  name: "swe-bench",
  title: "SWE-bench, Verified, Lite",
  columns: [],
  hasTestPatch: true,
  hasBaseCommit: true,
  patchMakesBug: false,
  recognises: (fields) => "base_commit" in fields && !("install_config" in fields),
  read(fields, shared) {
    const parser = fields.text("log_parser");
    fields.object("image_assets");
    return {
      language: fields.text("language")?.toLowerCase() ?? "python",
      image: fields.text(IMAGE) ?? imageNamedAfter("swebench/sweb.eval.x86_64.", shared.instance, "_1776_"),
      workdir: fields.text("workdir") ?? "/testbed",
      ...(parser === undefined ? {} : { parser }),
      evaluation: evaluationOf(fields, shared),
    };
  },
};

function evaluationOf(fields: RowFields, { repo, version, tests }: SharedPart): Evaluation {
  const script = fields.text(EVAL_SCRIPT);
  if (script !== undefined) return { kind: "script", text: script };
  const command = testCommandOf(repo, version);
  if (command === undefined) {
    fields.refuse(
      "eval_script",
      `is absent, and how ${repo || "the repository"} is tested at version ${version ?? "(none)"} is not known`,
      "Add eval_script to the record.",
    );
    return { kind: "script", text: "" };
  }
  const directives = tests === undefined ? [] : directivesOf(tests, repo);
  return {
    kind: "built",
    prepare: command.prepare,
    install: command.install,
    test: [[command.test, ...directives].join(" ")],
    usesConda: true,
  };
}
