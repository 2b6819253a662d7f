/** Every variant of the data sets: which one a row is of, and what of it ends in the task. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readRecord } from "@mortise/grading";
import { describe, expect, test } from "vitest";
import { loadTask } from "../../src/index.js";
import {
  EVERY_VARIANT,
  type Fields,
  OPENSWE,
  OPENSWE_LEGO,
  SWE_BENCH,
  SWE_BENCH_5,
  SWE_GYM,
  SWE_REBENCH,
  SWE_REBENCH_2,
  SWE_SMITH,
} from "./rows.js";
import { importRows, refusal, workplace } from "./workplace.js";

const place = workplace();

async function imported(row: Fields, changes: Parameters<typeof importRows>[2] = {}) {
  const report = await importRows(place, [row], changes);
  const [dataset] = Object.keys(report.datasets);
  const id = String(row.instance_id).replaceAll(".", "-");
  const task = loadTask(join(place.directory, "out", id));
  const read = (path: string) => readFileSync(join(task.directory, path), "utf8");
  return { report, dataset, task, read };
}

/** The shell lines between the marks. */
function testLines(script: string): string[] {
  const lines = script.split("\n");
  return lines.slice(lines.indexOf(": '>>>>> Start Test Output'") + 1, lines.indexOf("code=$?"));
}

test.each(EVERY_VARIANT)(
  "a row of %s is told by its columns, and graded by its own record",
  async (name, row) => {
    const { dataset, task, read, report } = await imported(row);
    expect(dataset).toBe(name);
    expect(report.unknownColumns).toEqual([]);
    expect(task.warnings).toEqual([]);
    const { expected } = task.tests;
    expect(expected).toMatchObject({
      format: "log",
      failToPass: ["tests/test_sum.py::test_two", "tests/test_more.py::test_three"],
      passToPass: ["tests/test_sum.py::test_zero"],
    });
    const record = readRecord(JSON.parse(read("tests/config.json")), "config.json");
    expect(expected).toMatchObject({ parser: record.parser.name });
    expect(record).toMatchObject({
      instance: row.instance_id,
      failToPass: expected?.failToPass,
      passToPass: expected?.passToPass,
    });
  },
);

describe("what each data set says", () => {
  test("SWE-bench: image by the instance, command by repository and version", async () => {
    const { task, read } = await imported(SWE_BENCH);
    expect(task.environment).toMatchObject({
      dockerImage: "swebench/sweb.eval.x86_64.psf_1776_requests-1:latest",
      workdir: "/testbed",
      network: { mode: "no-network" },
    });
    expect(task.metadata).toEqual({
      dataset: "swe-bench",
      instance_id: "psf__requests-1",
      repo: "psf/requests",
      language: "python",
      base_commit: SWE_BENCH.base_commit,
      version: "2.26",
      created_at: "2023-02-06T19:20:34.000Z",
      patch_files: 1,
      patch_lines: 2,
    });
    expect(task).toMatchObject({
      instruction: "add subtracts.\n",
      agentTimeoutSec: 3000,
      verifier: { timeoutSec: 1800 },
      tests: { expected: { parser: "pytest-options" } },
    });
    expect(read("solution/gold.patch")).toBe(SWE_BENCH.patch);
    expect(read("tests/test.patch")).toBe(SWE_BENCH.test_patch);
    expect(testLines(read("tests/eval.sh"))).toEqual(["pytest -rA tests/test_sum.py tests/test_more.py"]);
    expect(read("tests/eval.sh")).toContain(
      "\npython -m pip install . || PIP_NO_BUILD_ISOLATION=0 python -m pip install .\n",
    );
  });

  test("version 5 of SWE-bench: image, script and parser of the record", async () => {
    const { task, read } = await imported(SWE_BENCH_5);
    expect(task.environment.dockerImage).toBe("registry.example/sum:2");
    expect(read("tests/eval.sh")).toBe(`${SWE_BENCH_5.eval_script}\n`);
    expect(read("tests/test.sh")).not.toContain("Start Test Output");
    expect(JSON.parse(read("tests/config.json")).image_assets).toEqual({ problem_statement: [] });
    const asObject = { ...SWE_BENCH_5, image_assets: { problem_statement: [] } };
    const again = await imported(asObject, { replace: true });
    expect(again.report).toMatchObject({ kept: 1, replaced: 0 });
  });

  test.each([
    ["3.0", "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 test_sum test_more"],
    ["1.9", "./tests/runtests.py --verbosity 2 test_sum test_more"],
  ])("Django %s: modules below tests/", async (version, command) => {
    const { read } = await imported({
      ...SWE_BENCH,
      repo: "django/django",
      version,
      instance_id: "django__django-1",
    });
    expect(testLines(read("tests/eval.sh"))).toEqual([command]);
  });

  test("files that are deleted or hold no tests are not asked for", async () => {
    const patch = [
      "diff --git a/tests/old_test.py b/tests/old_test.py",
      "deleted file mode 100644",
      "--- a/tests/old_test.py",
      "+++ /dev/null",
      "@@ -1 +0,0 @@",
      "-x",
      "diff --git a/tests/data.json b/tests/data.json",
      "--- a/tests/data.json",
      "+++ b/tests/data.json",
      "@@ -1 +1 @@",
      "-{}",
      "+[]",
      "",
    ].join("\n");
    const { read } = await imported({ ...SWE_BENCH, test_patch: `${SWE_BENCH.test_patch}${patch}` });
    expect(testLines(read("tests/eval.sh"))).toEqual(["pytest -rA tests/test_sum.py tests/test_more.py"]);
    expect(read("tests/eval.sh")).toContain(
      '\nrm -f -- tests/test_more.py\ngit checkout --quiet "$base" -- tests/test_sum.py tests/old_test.py tests/data.json ||',
    );
  });

  test("SWE-Gym: its own images, and the runner of each repository", async () => {
    const { task, read } = await imported(SWE_GYM);
    expect(task.environment.dockerImage).toBe("xingyaoww/sweb.eval.x86_64.getmoto_s_moto-5406:latest");
    expect(testLines(read("tests/eval.sh"))).toEqual(["pytest -n0 -rA tests/test_sum.py tests/test_more.py"]);
  });

  test("SWE-Gym: mypy's tests are chosen by their cases", async () => {
    const added = "+[case testOne]\n+[case testTwo]\n";
    const test_patch = `diff --git a/t.test b/t.test\n--- a/t.test\n+++ b/t.test\n@@ -1 +1,3 @@\n x\n${added}`;
    const row = {
      ...SWE_GYM,
      repo: "python/mypy",
      instance_id: "python__mypy-1",
      version: "1.0",
      test_patch,
    };
    const { read } = await imported(row);
    expect(testLines(read("tests/eval.sh"))).toEqual(["pytest -n0 -rA -k 'testOne or testTwo'"]);
  });

  test("SWE-rebench: command, variables and installation of install_config", async () => {
    const { task, read } = await imported(SWE_REBENCH);
    expect(task.environment.dockerImage).toBe(
      "swerebench/sweb.eval.x86_64.0b01001001_1776_spectree-64:latest",
    );
    expect(task.metadata).toMatchObject({ created_at: "2020-10-12T13:21:50.000Z" });
    expect(testLines(read("tests/eval.sh"))).toEqual([
      "pytest --no-header -rA --tb=line --color=no tests/test_sum.py tests/test_more.py",
    ]);
    expect(read("tests/eval.sh")).toContain(
      "\nexport MODE='a b'\npip install -e .[dev] || PIP_NO_BUILD_ISOLATION=0 pip install -e .[dev]\n",
    );
  });

  test("SWE-rebench V2: works where its image works, and runs its commands as they are", async () => {
    const { task, read, report } = await imported(SWE_REBENCH_2);
    expect(task.environment.dockerImage).toBe(SWE_REBENCH_2.image_name);
    expect(task.environment.workdir).toBeUndefined();
    expect(task.metadata).toMatchObject({ language: "python" });
    expect(testLines(read("tests/eval.sh"))).toEqual(["export SEED=1", "sh run-tests.sh"]);
    expect(read("tests/eval.sh")).not.toContain("conda");
    expect(report.repairs).toMatchObject([
      { field: "FAIL_TO_PASS", what: "has escape sequences in names, which were removed" },
    ]);
  });

  test("SWE-smith: the patch makes the bug, its reverse repairs it, the tests are those of the image", async () => {
    const { task, read } = await imported(SWE_SMITH);
    expect(task.id).toBe("oauthlib__oauthlib-1fd52536-combine_file__09vlzwgc");
    expect(task.metadata).toMatchObject({ repo: "oauthlib/oauthlib", instance_id: SWE_SMITH.instance_id });
    expect(read("environment/bug.patch")).toBe(SWE_SMITH.patch);
    expect(read("environment/Dockerfile")).toContain(`FROM ${SWE_SMITH.image_name}\n`);
    expect(read("solution/gold.patch")).toContain("\n-    return a + b\n+    return a - b\n");
    expect(task.environment.workdir).toBe("/testbed");
    const files = "tests/test_more.py tests/test_sum.py";
    expect(testLines(read("tests/eval.sh"))).toEqual([
      `pytest --disable-warnings --color=no --tb=no --verbose ${files}`,
    ]);
    expect(read("tests/eval.sh")).toContain(`\ngit checkout --quiet HEAD -- ${files} ||`);
  });

  test("OpenSWE as LEGO-RL has it: image, lists and parser; marks are put around its script", async () => {
    const { task, read } = await imported(OPENSWE_LEGO);
    expect(task.environment).toMatchObject({ dockerImage: "registry.example/openswe:5" });
    expect(task.environment.dockerfile).toBeUndefined();
    expect(read("tests/eval.sh")).toBe(`${OPENSWE.eval_script}\n`);
    expect(read("tests/test.sh")).toContain("Start Test Output");
  });

  test("OpenSWE without lists is taken only when exit codes are allowed, and writes a reward", async () => {
    const error = await refusal(() => imported(OPENSWE));
    expect(error.message).toBe(
      "A record of a data set cannot be used. rows.jsonl:1 (elsewhere__sum-4): FAIL_TO_PASS is absent: graded by an exit code alone, which one line of the graded code can forge.",
    );
    expect(error.fix).toBe(
      "Take a copy with lists of tests, or pass --allow-exit-code. Or pass --skip-invalid to leave such rows out.",
    );
    const { task, read } = await imported(OPENSWE, { allowExitCode: true });
    expect(task.tests.expected).toBeUndefined();
    expect(task.environment.workdir).toBe("/testbed");
    expect(read("environment/Dockerfile")).toBe(OPENSWE.Dockerfile);
    expect(read("tests/test.sh")).toContain("/logs/verifier/reward.txt");
  });
});

test("lists may be lists, JSON of lists, or lists as Python prints them", async () => {
  const { task } = await imported({ ...SWE_BENCH, FAIL_TO_PASS: `['a::b', "c::d['x']"]`, PASS_TO_PASS: "" });
  expect(task.tests.expected).toMatchObject({ failToPass: ["a::b", "c::d['x']"], passToPass: [] });
});

describe("rows that cannot be used are refused with row, field and fix", () => {
  const without = (row: Fields, ...names: string[]) =>
    Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name)));
  test.each<[string, Fields, string, string]>([
    [
      "no instance id",
      without(SWE_BENCH, "instance_id"),
      "rows.jsonl:1: instance_id is absent or empty",
      "Add instance_id to the record.",
    ],
    [
      "an instance id that is none",
      { ...SWE_BENCH, instance_id: "../etc passwd" },
      'rows.jsonl:1 (../etc passwd): instance_id is no id: "../etc passwd"',
      "Use printable ASCII without spaces, beginning with a letter or digit.",
    ],
    [
      "empty lists",
      { ...SWE_BENCH, FAIL_TO_PASS: "[]", PASS_TO_PASS: [] },
      "(psf__requests-1): FAIL_TO_PASS and PASS_TO_PASS are empty: nothing would be tested",
      "Give the tests that fail before the repair and pass after it.",
    ],
    [
      "an empty fail-to-pass list",
      { ...SWE_BENCH, FAIL_TO_PASS: "" },
      "FAIL_TO_PASS is empty: doing nothing would resolve it",
      "Give the tests that fail before the repair and pass after it.",
    ],
    [
      "a list that is none",
      { ...SWE_BENCH, PASS_TO_PASS: '{"a": 1}' },
      "PASS_TO_PASS is no list of test names",
      "Write PASS_TO_PASS as a list of strings, or as JSON of one.",
    ],
    [
      "no test patch",
      { ...SWE_BENCH, test_patch: " " },
      "test_patch is absent or empty",
      "Add test_patch to the record.",
    ],
    [
      "a malformed patch",
      { ...SWE_BENCH, patch: String(SWE_BENCH.patch).replace("+1,2", "+1,3") },
      "patch is no patch: line 4 is a hunk the patch ends within",
      "Take patch from `git diff` again.",
    ],
    [
      "no statement",
      { ...SWE_BENCH, problem_statement: null },
      "problem_statement is absent or empty",
      "Add problem_statement to the record.",
    ],
    [
      "a base commit that is none",
      { ...SWE_BENCH, base_commit: "main" },
      'base_commit is no commit: "main"',
      "Give its hexadecimal digits.",
    ],
    [
      "a repository that is none",
      { ...SWE_BENCH_5, repo: "sum" },
      'repo is no repository: "sum"',
      "Write owner/name.",
    ],
    [
      "an unknown repository without a script",
      without(SWE_BENCH_5, "eval_script"),
      "eval_script is absent, and how elsewhere/sum is tested at version 2.26 is not known",
      "Add eval_script to the record.",
    ],
    [
      "an unknown parser",
      { ...SWE_BENCH_5, log_parser: "parse_log_nothing" },
      'log_parser names no parser: "parse_log_nothing"',
      "Name a parser in log_parser; docs/grading.md lists them.",
    ],
    [
      "no parser for the repository",
      without(SWE_BENCH_5, "log_parser"),
      "log_parser is absent, and no parser is known for elsewhere/sum",
      "Name a parser in log_parser; docs/grading.md lists them.",
    ],
    [
      "an eval_type that is none",
      { ...SWE_BENCH_5, eval_type: "all" },
      'eval_type is "all".',
      'Use "pass_and_fail" or "fail_only".',
    ],
    [
      "no test command",
      { ...SWE_REBENCH, install_config: { log_parser: "parse_log_pytest" } },
      "install_config.test_cmd is absent",
      "Say how the tests are run.",
    ],
    [
      "an install_config that is none",
      { ...SWE_REBENCH, install_config: "pip" },
      "install_config is no object",
      "Write install_config as an object, or as JSON of one.",
    ],
    [
      "no image",
      without(SWE_REBENCH_2, "image_name"),
      "image_name is absent or empty",
      "Add image_name to the record.",
    ],
    [
      "neither image nor Dockerfile",
      without(OPENSWE_LEGO, "docker_image", "Dockerfile"),
      "docker_image is absent, and there is no Dockerfile",
      "Add docker_image or Dockerfile.",
    ],
    [
      "a binary bug",
      {
        ...SWE_SMITH,
        patch:
          "diff --git a/b b/b\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmeyw\n\nliteral 3\nKcmeyw\n\n",
      },
      "patch changes b in a way that cannot be turned around",
      "Leave the record out.",
    ],
  ])("%s", async (_, row, message, fix) => {
    const error = await refusal(() => importRows(place, [row]));
    expect(error.code).toBe("MORTISE_TASK_RECORD");
    expect(error.message).toContain(message);
    expect(error.message.endsWith(".")).toBe(true);
    expect(error.fix.startsWith(fix)).toBe(true);
  });

  test("columns of no data set are listed", async () => {
    const error = await refusal(() => importRows(place, [{ question: "?", answer: "!" }]));
    expect(error.code).toBe("MORTISE_TASK_SOURCE");
    expect(error.message).toContain("rows.jsonl:1: of no known data set; its columns are question, answer.");
  });
});
