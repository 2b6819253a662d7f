/**
 * Owns SWE-smith: `patch` makes the bug, and what it undoes is the repair; the tests are those of the image, named
 * by the two lists. Sources of facts: the data set's card and the `swesmith` package 0.0.9. Its own harness fetches
 * a branch with the bug from a mirror; here the image is built from the record, which needs no network.
 */

import { quoted } from "../evaluation/quoted.js";
import { smithCommandOf } from "../evaluation/swe-smith-commands.js";
import type { RowFields } from "../fields.js";
import type { Evaluation } from "../record.js";
import { type Dataset, IMAGE, type SharedPart } from "./dataset.js";

/** The mirror `swesmith/owner__name.1a2b3c4d` of `owner/name` at a commit. */
const MIRROR = /^(?:[^/]+\/)?([^/]+?)__([^/]+)\.[0-9a-f]{7,40}$/;

export const sweSmith: Dataset = {
  name: "swe-smith",
  title: "SWE-smith",
  columns: ["strategy", "bug_type", "rationale"],
  hasTestPatch: false,
  hasBaseCommit: false,
  patchMakesBug: true,
  recognises: (fields) =>
    !("test_patch" in fields) &&
    ("image_name" in fields || (typeof fields.repo === "string" && MIRROR.test(fields.repo))),
  read(fields, shared) {
    const repository = projectOf(shared.repo);
    const parser = fields.text("log_parser") ?? smithCommandOf(repository).parser;
    const image = fields.required(IMAGE);
    return {
      language: fields.text("language")?.toLowerCase() ?? "python",
      dockerfile: dockerfileOf(image),
      workdir: "/testbed",
      ...(parser === undefined ? {} : { parser }),
      evaluation: evaluationOf(fields, shared, repository),
      ...(repository === shared.repo ? {} : { repository }),
    };
  },
};

/** The project a mirror is of; any other repository is its own. */
export function projectOf(repo: string): string {
  const mirror = MIRROR.exec(repo);
  return mirror === null ? repo : `${mirror[1]}/${mirror[2]}`;
}

/** Puts the bug into the image and makes it the state that history begins with. */
function dockerfileOf(image: string): string {
  return [
    `FROM ${image}`,
    "COPY bug.patch /tmp/bug.patch",
    "RUN cd /testbed && git apply /tmp/bug.patch && rm /tmp/bug.patch \\",
    "    && git -c user.name=mortise -c user.email=mortise@localhost commit --quiet --all --message task",
    "WORKDIR /testbed",
    "",
  ].join("\n");
}

function evaluationOf(fields: RowFields, shared: SharedPart, repository: string): Evaluation {
  const own = fields.commands("test_cmd", fields.row.fields.test_cmd);
  if (own.length > 0) return built(own);
  const command = smithCommandOf(repository);
  if (!command.takesFiles) return built([command.test]);
  const names = [...shared.failToPass, ...shared.passToPass];
  if (names.length > 0 && !names.some((name) => name.includes(".py")))
    fields.refuse("test_cmd", "is absent, and the tests are no pytest ids", "Add test_cmd to the record.");
  const files = [...new Set(names.map((name) => name.split("::", 1)[0]!))].sort();
  return { ...built([[command.test, ...files.map(quoted)].join(" ")]), restore: files };
}

function built(test: readonly string[]): Extract<Evaluation, { kind: "built" }> {
  return { kind: "built", prepare: [], install: [], test, usesConda: true };
}
