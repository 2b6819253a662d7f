/**
 * Owns OpenSWE: records with a Dockerfile and a script that prints `OPENSWE_EXIT_CODE`, and the copy of it that
 * LEGO-RL trains on, which adds images, parsers and lists of tests. Without lists a task is graded by an exit code
 * alone, which one line of the graded code can forge; whether that is taken is the caller's choice.
 */
import type { RowFields } from "../fields.js";
import { type Dataset, EVAL_SCRIPT, IMAGE } from "./dataset.js";
import { parserOf } from "./swe-rebench.js";

const DOCKERFILE = ["Dockerfile", "dockerfile"] as const;

export const openSwe: Dataset = {
  name: "openswe",
  title: "OpenSWE",
  columns: ["end_commit", "Dockerfile", "dockerfile", "source", "pull_number", "issue_numbers"],
  hasTestPatch: true,
  hasBaseCommit: true,
  patchMakesBug: false,
  recognises: (fields) => "end_commit" in fields || DOCKERFILE.some((name) => name in fields),
  read(fields) {
    const config = fields.object("install_config");
    const image = fields.text(IMAGE);
    const script = fields.required(EVAL_SCRIPT);
    const dockerfile = image === undefined ? fields.text(DOCKERFILE) : undefined;
    if (image === undefined && dockerfile === undefined)
      fields.refuse(
        "docker_image",
        "is absent, and there is no Dockerfile",
        "Add docker_image or Dockerfile.",
      );
    const workdir =
      fields.text("workdir") ?? (dockerfile === undefined ? undefined : workdirOf(fields, dockerfile));
    return {
      language: fields.text("language")?.toLowerCase() ?? "python",
      ...(image === undefined ? {} : { image }),
      ...(dockerfile === undefined ? {} : { dockerfile }),
      ...(workdir === undefined ? {} : { workdir }),
      ...parserOf(fields, config),
      evaluation: { kind: "script", text: script },
    };
  },
};

/** The last absolute WORKDIR: where the image leaves off is where the agent begins. */
function workdirOf(fields: RowFields, dockerfile: string): string | undefined {
  const directories = [...dockerfile.matchAll(/^\s*WORKDIR\s+(\S+)\s*$/gim)].map(([, path]) => path!);
  const last = directories.at(-1);
  if (last?.startsWith("/")) return last.replace(/(.)\/+$/, "$1");
  fields.refuse(
    "Dockerfile",
    "ends in no absolute WORKDIR",
    "Add `workdir` to the record: where the repository is.",
  );
  return undefined;
}
