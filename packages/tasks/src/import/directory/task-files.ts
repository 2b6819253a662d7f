/**
 * Owns the files of an imported task's Harbor directory, in memory: the same record gives the same bytes. Does not
 * touch the disk (write-task.ts).
 *
 * What only the verifier may see (record, test patch, names of tests) is below tests/, the repair below solution/.
 */
import { stringify } from "smol-toml";
import type { TaskFileContent } from "../../harbor/digest.js";
import { buildEvalScript } from "../evaluation/eval-script.js";
import { quoted } from "../evaluation/quoted.js";
import { testScript } from "../evaluation/test-script.js";
import { changedLines } from "../patch/mend-patch.js";
import type { TaskRecord } from "../record.js";

/** Limits of a task, the same for all tasks of an import. */
export interface TaskLimits {
  readonly cpus: number;
  readonly memoryMb: number;
  readonly storageMb: number;
  readonly agentTimeoutSec: number;
  readonly verifierTimeoutSec: number;
}

/** Memory and time that gold patches of SWE-bench need with room to spare. */
export const DEFAULT_LIMITS: TaskLimits = {
  cpus: 2,
  memoryMb: 8192,
  storageMb: 20_480,
  agentTimeoutSec: 3000,
  verifierTimeoutSec: 1800,
};

/** Every file of the task's directory. */
export function importedTaskFiles(record: TaskRecord, limits: TaskLimits): TaskFileContent[] {
  const plain = (path: string, content: string): TaskFileContent => ({ path, kind: "-", content });
  const script = (path: string, content: string): TaskFileContent => ({ path, kind: "x", content });
  const { evaluation, tests, bug } = record;
  return [
    plain("task.toml", taskToml(record, limits)),
    plain("instruction.md", withNewline(record.statement)),
    ...(record.dockerfile === undefined
      ? []
      : [plain("environment/Dockerfile", withNewline(record.dockerfile))]),
    ...(bug === undefined ? [] : [plain("environment/bug.patch", bug.text)]),
    plain("tests/config.json", `${JSON.stringify(sorted(record.fields), null, 2)}\n`),
    ...(record.isExitCodeOnly ? [] : [plain("tests/expected.json", expectedJson(record))]),
    ...(tests === undefined ? [] : [plain("tests/test.patch", tests.text)]),
    script(
      "tests/eval.sh",
      evaluation.kind === "script" ? withNewline(evaluation.text) : buildEvalScript(record),
    ),
    script("tests/test.sh", testScript(record)),
    plain("solution/gold.patch", record.gold.text),
    script("solution/solve.sh", solveScript(record)),
  ];
}

function taskToml(record: TaskRecord, limits: TaskLimits): string {
  const { version, baseCommit, createdAt, difficulty, image, workdir } = record;
  return stringify({
    schema_version: "1.4",
    source: record.dataset,
    task: { name: `${record.dataset}/${record.id}` },
    metadata: {
      dataset: record.dataset,
      instance_id: record.instance,
      repo: record.repository,
      language: record.language,
      ...(baseCommit === undefined ? {} : { base_commit: baseCommit }),
      ...(version === undefined ? {} : { version }),
      ...(createdAt === undefined ? {} : { created_at: createdAt }),
      ...(difficulty === undefined ? {} : { difficulty }),
      patch_files: record.gold.files.length,
      patch_lines: changedLines(record.gold),
    },
    agent: { timeout_sec: limits.agentTimeoutSec },
    verifier: { timeout_sec: limits.verifierTimeoutSec },
    environment: {
      ...(image === undefined ? {} : { docker_image: image }),
      ...(workdir === undefined ? {} : { workdir }),
      cpus: limits.cpus,
      memory_mb: limits.memoryMb,
      storage_mb: limits.storageMb,
      network_mode: "no-network",
    },
  });
}

function expectedJson({ parser, failToPass, passToPass }: TaskRecord): string {
  return `${JSON.stringify(
    { schema: 1, format: "log", ...(parser === undefined ? {} : { parser }), failToPass, passToPass },
    null,
    2,
  )}\n`;
}

/** Applies the repair with git, or with patch where an image has no git. */
function solveScript({ workdir }: TaskRecord): string {
  return `#!/bin/sh
set -e
solution=$(cd "$(dirname "$0")" && pwd)
${workdir === undefined ? "" : `cd ${quoted(workdir)}\n`}if command -v git > /dev/null; then
  git apply "$solution/gold.patch"
else
  patch --batch -p1 -i "$solution/gold.patch"
fi
`;
}

/** Columns come in any order: a parquet file and a JSON file of the same record give the same bytes. */
function sorted(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function withNewline(text: string): string {
  return text.endsWith("\n") ? text : `${text}\n`;
}
