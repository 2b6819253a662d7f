/**
 * Owns SWE-Gym: SWE-bench's columns, eleven repositories, images by another name. Sources of facts: the data
 * set's card and the fork of the harness it is graded with (SWE-Gym/SWE-Bench-Package).
 */
import { directivesOf } from "../evaluation/directives.js";
import { quoted } from "../evaluation/quoted.js";
import { gymCommandOf, isGymRepository } from "../evaluation/swe-gym-commands.js";
import { type Dataset, IMAGE, imageNamedAfter, type SharedPart } from "./dataset.js";

export const sweGym: Dataset = {
  name: "swe-gym",
  title: "SWE-Gym",
  columns: [],
  hasTestPatch: true,
  hasBaseCommit: true,
  patchMakesBug: false,
  recognises: (fields) => typeof fields.repo === "string" && isGymRepository(fields.repo),
  read(fields, shared) {
    const parser = fields.text("log_parser");
    return {
      language: "python",
      image: fields.text(IMAGE) ?? imageNamedAfter("xingyaoww/sweb.eval.x86_64.", shared.instance, "_s_"),
      workdir: "/testbed",
      ...(parser === undefined ? {} : { parser }),
      evaluation: {
        kind: "built",
        ...commandsOf(shared),
        usesConda: true,
      },
    };
  },
};

function commandsOf({ repo, version, tests }: SharedPart): {
  prepare: readonly string[];
  install: readonly string[];
  test: readonly string[];
} {
  const { prepare, install, test, isSelectedByCase } = gymCommandOf(repo, version);
  if (tests === undefined) return { prepare, install, test: [test] };
  const selected = isSelectedByCase ? caseSelection(tests.text) : directivesOf(tests, repo);
  return { prepare, install, test: [[test, ...selected].join(" ")] };
}

/** mypy's data-driven tests have no files of their own: they are chosen by the names of their cases. */
function caseSelection(patch: string): string[] {
  const names = [...patch.matchAll(/\[case ([^\]]+)\]/g)].map(([, name]) => name!);
  return [quoted([...new Set(names)].join(" or "))];
}
