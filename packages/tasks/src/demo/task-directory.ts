/**
 * Owns the files of a demo task's Harbor directory, in memory and on disk. Deterministic: the same task gives
 * the same bytes. Does not choose tasks (plan.ts).
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TaskFileContent } from "../harbor/digest.js";
import type { SourceTree } from "./library.js";
import type { DemoTask } from "./plan.js";

const RUNNER = readFileSync(fileURLToPath(new URL("../../demo/run.cjs", import.meta.url)), "utf8");

/** The image is built locally (it needs node and a shell); nothing is pulled. */
const DOCKERFILE = `ARG NODE_IMAGE=mortise-base/node:local
FROM \${NODE_IMAGE}
WORKDIR /workspace
COPY repository/ /workspace/
`;

const TEST_SCRIPT = `#!/bin/sh
# Prints one JSON line per hidden test of the repository in the working directory.
exec node "$(dirname "$0")/run.cjs"
`;

/** Every file of the task's directory. `library` is the repository without the bug. */
export function demoTaskFiles(task: DemoTask, library: SourceTree): TaskFileContent[] {
  const repository = { ...library, [task.file]: task.buggyFile };
  const plain = (path: string, content: string): TaskFileContent => ({ path, kind: "-", content });
  const script = (path: string, content: string): TaskFileContent => ({ path, kind: "x", content });
  return [
    plain("task.toml", taskToml(task)),
    plain("instruction.md", `Repair ${task.function} in ${task.file}: ${task.sentence}\n`),
    plain("environment/Dockerfile", DOCKERFILE),
    ...Object.entries(repository).map(([path, text]) => plain(`environment/repository/${path}`, text)),
    script("tests/test.sh", TEST_SCRIPT),
    plain("tests/run.cjs", RUNNER),
    plain("tests/cases.json", `${JSON.stringify({ entry: task.file, cases: task.cases })}\n`),
    plain("tests/expected.json", expectedJson(task)),
    script("solution/solve.sh", solveScript(task)),
    plain("solution/gold.patch", goldPatch(task)),
  ];
}

/** Writes a task's files below a directory, which is created. */
export function writeTaskFiles(directory: string, files: readonly TaskFileContent[]): void {
  const made = new Set<string>();
  for (const file of files) {
    const path = join(directory, file.path);
    const parent = dirname(path);
    if (!made.has(parent)) mkdirSync(parent, { recursive: true });
    made.add(parent);
    writeFileSync(path, file.content, { mode: file.kind === "x" ? 0o755 : 0o644 });
  }
}

function taskToml(task: DemoTask): string {
  return `schema_version = "1.2"

[task]
name = "mortise/${task.id}"
description = "Repair one function of the tally library."

[metadata]
family = "tally"
context = "${task.context}"
function = "${task.function}"
file = "${task.file}"

[agent]
timeout_sec = 60

[verifier]
timeout_sec = 30

[environment]
cpus = 1
memory_mb = 256
storage_mb = 64
network_mode = "no-network"
workdir = "/workspace"
`;
}

function expectedJson(task: DemoTask): string {
  const { failToPass, passToPass } = task;
  return `${JSON.stringify({ schema: 1, format: "json-lines", failToPass, passToPass }, null, 2)}\n`;
}

/** Writes the repaired file below the working directory with nothing but a shell, so it works in an image without git or patch. */
function solveScript(task: DemoTask): string {
  return `#!/bin/sh
set -e
cat > ${task.file} <<'END_OF_GOLD_FILE'
${task.goldFile}END_OF_GOLD_FILE
`;
}

/** The repair as a unified diff. Buggy and gold file differ within one line, so it is one hunk. */
function goldPatch(task: DemoTask): string {
  const before = task.buggyFile.split("\n");
  const after = task.goldFile.split("\n");
  const changed = before.findIndex((line, index) => line !== after[index]);
  const first = Math.max(0, changed - 3);
  const last = Math.min(before.length - 2, changed + 3);
  const hunk: string[] = [];
  for (let index = first; index <= last; index++) {
    if (index === changed) hunk.push(`-${before[index]}`, `+${after[index]}`);
    else hunk.push(` ${before[index]}`);
  }
  const span = `${first + 1},${last - first + 1}`;
  return [`--- a/${task.file}`, `+++ b/${task.file}`, `@@ -${span} +${span} @@`, ...hunk, ""].join("\n");
}
