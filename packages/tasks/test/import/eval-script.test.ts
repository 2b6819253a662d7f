/**
 * Built scripts run by real bash and git in a repository, and their logs graded as a verifier would. The runner is
 * a shell script that prints what pytest prints.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { gradeTaskLog, loadTask, type Task } from "../../src/index.js";
import { type Fields, OPENSWE, SWE_REBENCH_2 } from "./rows.js";
import { importRows, workplace } from "./workplace.js";

const place = workplace();

/** Tests are told by the files that hold them: what is not there is not run. */
const RUNNER = `status=0
say() { if [ "$1" = 0 ]; then echo "PASSED $2"; else echo "FAILED $2 - assert"; status=1; fi; }
echo "=========================== short test summary info ============================"
grep -q test_zero tests/test_sum.py && say 0 tests/test_sum.py::test_zero
if grep -q test_two tests/test_sum.py; then grep -q 'a + b' src/sum.py; say $? tests/test_sum.py::test_two; fi
if [ -f tests/test_more.py ]; then grep -q 'a + b' src/sum.py; say $? tests/test_more.py::test_three; fi
[ "$status" = 0 ] && echo "===== 3 passed in 0.01s =====" || echo "===== 2 failed, 1 passed in 0.01s ====="
exit $status
`;

let repository: string;

function git(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync("git", ["-C", repository, ...args], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return stdout.trim();
}

function put(path: string, content: string): void {
  mkdirSync(join(repository, path, ".."), { recursive: true });
  writeFileSync(join(repository, path), content);
}

beforeEach(() => {
  repository = join(place.directory, "repository");
  mkdirSync(repository);
  git("init", "--quiet");
  put("src/sum.py", "def add(a, b):\n    return a - b\n");
  put("tests/test_sum.py", "def test_zero():\n    assert add(0, 0) == 0\n");
  put("run-tests.sh", RUNNER);
  git("add", "--all");
  git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "base");
});

async function taskOf(row: Fields, allowExitCode = false): Promise<Task> {
  await importRows(place, [row], { allowExitCode });
  return loadTask(join(place.directory, "out", String(row.instance_id)));
}

const row = (): Fields => ({
  ...SWE_REBENCH_2,
  base_commit: git("rev-parse", "HEAD"),
  install_config: { test_cmd: "sh run-tests.sh", log_parser: "parse_log_pytest" },
});

function runScript(script: string, env: Readonly<Record<string, string>> = {}) {
  const { status, stdout } = spawnSync("sh", [script], { cwd: repository, env: { ...process.env, ...env } });
  return {
    exitCode: status ?? -1,
    signal: "",
    timedOut: false,
    outOfMemory: false,
    outputTruncated: false,
    stdout,
  };
}

function grade(task: Task) {
  const { expected } = task.tests;
  if (expected?.format !== "log") throw new Error("it has no log to grade");
  const ran = runScript(task.tests.script);
  return { ...gradeTaskLog(task, expected, ran), exitCode: ran.exitCode, log: ran.stdout.toString() };
}

describe("a built script", () => {
  test("resolves with the gold patch and does not without", async () => {
    const task = await taskOf(row());
    expect(grade(task)).toMatchObject({
      outcome: "unresolved",
      failed: ["tests/test_sum.py::test_two", "tests/test_more.py::test_three"],
      exitCode: 1,
    });
    git("checkout", "--quiet", "--force", ".");
    git("clean", "-fdq");
    expect(runScript(task.solution!.script).exitCode).toBe(0);
    expect(grade(task)).toMatchObject({ outcome: "resolved", failed: [], exitCode: 0 });
  });

  test("undoes what the agent did to test files, whether the test patch changes or adds them", async () => {
    const task = await taskOf(row());
    put("tests/test_sum.py", "def test_zero(): pass\n");
    put("tests/test_more.py", "def test_three(): pass\n");
    expect(grade(task)).toMatchObject({ outcome: "unresolved" });
    expect(readFileSync(join(repository, "tests/test_more.py"), "utf8")).toContain("assert add(1, 2) == 3");
    expect(readFileSync(join(repository, "tests/test_sum.py"), "utf8")).toContain("assert add(0, 0) == 0");
  });

  test("takes the only commit of a hidden history for the base", async () => {
    const task = await taskOf({ ...row(), base_commit: "0123456789abcdef0123456789abcdef01234567" });
    runScript(task.solution!.script);
    put("tests/test_sum.py", "changed\n");
    expect(grade(task)).toMatchObject({ outcome: "resolved" });
  });

  test("says that the test patch does not apply, and runs no test", async () => {
    git("mv", "tests/test_sum.py", "tests/test_other.py");
    git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "moved");
    const task = await taskOf({ ...row(), base_commit: git("rev-parse", "HEAD") });
    const { log, outcome } = grade(task);
    expect(log).toContain("\n>>>>> Reset Failed\n");
    expect(log).not.toContain("PASSED");
    expect(outcome).not.toBe("resolved");
  });

  test("keeps both outputs in order, in one", async () => {
    const { log } = grade(await taskOf(row()));
    const order = [
      "+ sh run-tests.sh",
      "PASSED tests/test_sum.py::test_zero",
      "+ code=1",
      "End Test Output",
      "Test Exit Code: 1",
    ];
    const places = order.map((text) => log.indexOf(text));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
  });
});

test("a script without marks is graded by what it prints", async () => {
  const eval_script = 'git apply "$(dirname "$0")/test.patch"\nsh run-tests.sh\necho OPENSWE_EXIT_CODE=$?';
  const lists = { FAIL_TO_PASS: SWE_REBENCH_2.PASS_TO_PASS, docker_image: "registry.example/sum" };
  const task = await taskOf({ ...OPENSWE, ...lists, eval_script, log_parser: "pytest" });
  expect(grade(task)).toMatchObject({ outcome: "resolved", failed: [] });
});
