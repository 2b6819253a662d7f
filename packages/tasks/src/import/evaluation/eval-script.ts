/**
 * Owns the script that runs a task's tests, for records that bring none. It follows the order of SWE-bench's own
 * (environment, installation, test files as before the test patch, test patch, marks around the tests), with these
 * differences:
 *
 * E1  Files the test patch adds are removed, not checked out: with one path that is not in the commit, `git
 *     checkout` restores none of the others.
 * E2  What cannot be prepared ends the script with the harness's own words, so no test runs on a half state.
 * E3  Packages are not looked for on any index: a task is graded without a network, and would wait for it.
 * E4  An installation that fails is tried again with the build tools of the environment: in isolation, pip would
 *     download its own. (pip reads the value 0 of this variable as "no isolation".)
 * E5  The commit is taken from history where it is there; where history is hidden, its only commit is the base.
 */
import type { Patch } from "../patch/parse-patch.js";
import type { TaskRecord } from "../record.js";
import { quoted } from "./quoted.js";

const CONDA = [
  "if [ -f /opt/miniconda3/bin/activate ]; then",
  "  source /opt/miniconda3/bin/activate",
  "  conda activate testbed",
  "fi",
];

/** `record.evaluation` is of kind `built`. The script reads test.patch beside it and ends with the tests' exit code. */
export function buildEvalScript(record: TaskRecord): string {
  const { evaluation, instance } = record;
  if (evaluation.kind !== "built") throw new TypeError(`${instance} brings its own script`);
  const enter = record.workdir === undefined ? [] : [`cd ${quoted(record.workdir)}`];
  return [
    "#!/bin/bash",
    `# Runs the tests of ${instance}; the log goes to both outputs.`,
    "set -uxo pipefail",
    'tests=$(cd "$(dirname "$0")" && pwd)',
    "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'",
    "export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1",
    ...enter,
    ...(evaluation.usesConda ? CONDA : []),
    ...enter,
    ...evaluation.prepare,
    ...evaluation.install.map(withoutIsolation),
    ...restoreTests(evaluation.restore ?? []),
    ...(record.tests === undefined ? [] : applyTests(record.tests, record.baseCommit)),
    ": '>>>>> Start Test Output'",
    ...evaluation.test,
    "code=$?",
    ": '>>>>> End Test Output'",
    'echo "Test Exit Code: $code"',
    'exit "$code"',
    "",
  ].join("\n");
}

/** E4 */
function withoutIsolation(line: string): string {
  const isPip = /^(python -m )?pip install [^;&|]*$/.test(line);
  return isPip ? `${line} || PIP_NO_BUILD_ISOLATION=0 ${line}` : line;
}

function applyTests(tests: Patch, baseCommit: string | undefined): string[] {
  const old = tests.files.flatMap(({ oldPath }) => (oldPath === undefined ? [] : [oldPath]));
  const fresh = tests.files.flatMap(({ newPath, oldPath }) =>
    newPath === undefined || newPath === oldPath ? [] : [newPath],
  );
  const base =
    baseCommit === undefined
      ? "base=HEAD"
      : `base=$(git rev-parse --quiet --verify '${baseCommit}^{commit}' || echo HEAD)`;
  return [
    base,
    ...(fresh.length === 0 ? [] : [`rm -f -- ${words(fresh)}`]),
    ...(old.length === 0 ? [] : [checkout('"$base"', old)]),
    `git apply --verbose "$tests/test.patch" || { echo '>>>>> Patch Apply Failed'; exit 1; }`,
  ];
}

function restoreTests(files: readonly string[]): string[] {
  return files.length === 0 ? [] : [checkout("HEAD", files)];
}

function checkout(commit: string, paths: readonly string[]): string {
  return `git checkout --quiet ${commit} -- ${words(paths)} || { echo '>>>>> Reset Failed'; exit 1; }`;
}

function words(paths: readonly string[]): string {
  return [...new Set(paths)].map(quoted).join(" ");
}
