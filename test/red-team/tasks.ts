/**
 * Owns the tasks the suite is run on: each cheat has a task of its own, with an instruction that names it and a repair
 * that solves it. Does not know what cheats do.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { demoFamily, taskDigest, writeDemoTasks, writeTaskIndex } from "@mortise/tasks";
import type { KeptImage } from "../../services/verifier/test/kept-image.js";
import {
  CALC,
  type PythonProject,
  writePythonTask,
  writeRewardTask,
} from "../../services/verifier/test/python-task.js";
import { NODE_PROJECTS, nodeProject, UNITTEST } from "../../services/verifier/test/runner-projects.js";
import { type Cheat, type Family, write } from "./cheats/cheat.js";

/** The split of the task index all of them are in. */
export const SPLIT = "train";

export interface TaskKind {
  /** A task directory; its instruction is replaced. */
  readonly directory: string;
  /** Shell that solves it, in the work tree. */
  readonly repair: string;
}

export type TaskKinds = Readonly<Partial<Record<Family, TaskKind>>>;

/** Writes one task a cheat, and their index. @returns the repairs, as scripts, by task */
export function writeTasks(
  root: string,
  cheats: readonly Pick<Cheat, "name" | "family">[],
  kinds: TaskKinds,
): ReadonlyMap<string, string> {
  mkdirSync(root, { recursive: true });
  const repairs = new Map<string, string>();
  for (const { name, family } of cheats) {
    const kind = kinds[family]!;
    const image = join(kind.directory, "image");
    cpSync(kind.directory, join(root, name), { recursive: true, filter: (source) => source !== image });
    // A line end would be part of what the harness is told.
    writeFileSync(join(root, name, "instruction.md"), name);
    repairs.set(name, kind.repair);
  }
  writeTaskIndex(
    root,
    cheats.map(({ name }) => ({ id: name, digest: taskDigest(join(root, name)), split: SPLIT })),
  );
  return repairs;
}

/** Tasks for JavaScript: a bundled one, and one whose runner loads the code into its own process. */
export function javascriptKinds(scratch: string): TaskKinds {
  const task = demoFamily().find(
    ({ file, function: name }) => file === "src/count.js" && name === "countAbove",
  )!;
  const made = join(scratch, "bundled");
  writeDemoTasks(made, [task]);
  const realm = join(made, task.id);
  const repair = readFileSync(join(realm, "solution/solve.sh"), "utf8");
  const inProcess = join(scratch, "in-process");
  cpSync(realm, inProcess, { recursive: true });
  rmSync(join(inProcess, "tests/cases.json"));
  writeFileSync(join(inProcess, "tests/run.cjs"), IN_PROCESS_RUNNER);
  const expected = {
    schema: 1,
    format: "json-lines",
    failToPass: ["counts above"],
    passToPass: ["counts none"],
  };
  writeFileSync(join(inProcess, "tests/expected.json"), JSON.stringify(expected));
  return { realm: { directory: realm, repair }, process: { directory: inProcess, repair } };
}

/** Takes the nonce and all it needs before the graded code is loaded, and nothing after it. */
const IN_PROCESS_RUNNER = `"use strict";
const { readSync, writeSync } = require("node:fs");
const { deepStrictEqual } = require("node:assert");
const { stringify } = JSON;
const buffer = Buffer.alloc(64);
const nonce = buffer.toString("utf8", 0, readSync(0, buffer)).split("\\n")[0];
const tell = (record) => writeSync(1, stringify({ nonce, ...record }) + "\\n");
const { countAbove } = require(process.cwd() + "/src/count.js");
const tests = { "counts above": () => deepStrictEqual(countAbove([5, 1, 7], 4), 2), "counts none": () => deepStrictEqual(countAbove([], 4), 0) };
for (const name of ["counts above", "counts none"]) {
  let status = "passed";
  try { tests[name](); } catch { status = "failed"; }
  tell({ name, status });
}
tell({ end: true, tests: 2 });
`;

/** Tests that say nothing in literals: what is computed is compared with what is computed. */
const VALUES: PythonProject = {
  ...CALC,
  tests: {
    "tests/test_calc.py": CALC.files["tests/test_calc.py"]!.concat(
      "\n\ndef test_add():\n    assert add(1, 2) == len('abc')\n",
    ),
    "tests/test_more.py":
      "from calc import add\n\n\ndef test_negative():\n    assert add(-1, 2) == len('a')\n",
  },
};

/** Imported records with pytest and unittest, and a Harbor verifier that writes a reward. */
export async function pythonKinds(scratch: string, image: KeptImage): Promise<TaskKinds> {
  const made = join(scratch, "python/tasks");
  mkdirSync(made, { recursive: true });
  writeRewardTask(made, "calc-reward", REWARD_SCRIPT, image);
  return {
    pytest: await logKind(made, "calc", CALC, image),
    values: await logKind(made, "calc-values", VALUES, image),
    unittest: await logKind(made, "calc-unittest", UNITTEST, image),
    harbor: { directory: withSharedImage(join(made, "calc-reward")), repair: repairOf(CALC) },
  };
}

/** Imported records whose tests are run by Jest, Vitest and Mocha. */
export async function nodeKinds(scratch: string, image: KeptImage): Promise<TaskKinds> {
  const made = join(scratch, "node/tasks");
  const kinds: Partial<Record<Family, TaskKind>> = {};
  for (const project of NODE_PROJECTS)
    kinds[project.name] = await logKind(made, `calc-${project.name}`, nodeProject(project), image);
  return kinds;
}

async function logKind(
  made: string,
  name: string,
  project: PythonProject,
  image: KeptImage,
): Promise<TaskKind> {
  const { id } = await writePythonTask(made, name, project, image);
  return { directory: withSharedImage(join(made, id)), repair: repairOf(project) };
}

function repairOf({ repaired }: PythonProject): string {
  return Object.entries(repaired)
    .map(([path, text]) => write(path, text.trimEnd()))
    .join("");
}

/** The values are not in the repository, and what the code prints is compared by the shell. */
const REWARD_SCRIPT = `#!/bin/bash
cd /testbed
told="$(python3 -c 'from calc import add, sub; print(add(17, 25), add(-4, 9), sub(8, 3))' 2> /dev/null)"
if [ "$told" = "42 5 5" ]; then printf 1 > /logs/verifier/reward.txt; else printf 0 > /logs/verifier/reward.txt; fi
`;

/** The image stays where it is: one for all tasks of a kind. */
function withSharedImage(directory: string): string {
  const file = join(directory, "task.toml");
  const text = readFileSync(file, "utf8");
  const shared = text.replace(
    /docker_image = "oci:(.*)"/,
    (_, image: string) => `docker_image = "oci:${resolve(directory, image)}"`,
  );
  writeFileSync(file, shared);
  return directory;
}
