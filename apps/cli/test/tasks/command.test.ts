/** `mortise tasks import` and `mortise tasks index` from the command line: results, funnel, refusals. Uses dist. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadIndexedTask, readTaskIndex } from "@mortise/tasks";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mortise-tasks-command-"));
  writeFileSync(
    join(directory, "records.jsonl"),
    RECORDS.map((record) => `${JSON.stringify(record)}\n`).join(""),
  );
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const record = (repo: string, number: number) => ({
  repo,
  instance_id: `${repo.replace("/", "__")}-${number}`,
  base_commit: `${number}`.padStart(40, "0"),
  patch: `--- a/f.py\n+++ b/f.py\n@@ -1 +1,${number} @@\n-x\n${"+y\n".repeat(number)}`,
  test_patch: "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-x\n+y\n",
  problem_statement: "Repair it.",
  created_at: `202${number}-01-01`,
  version: "2.0",
  FAIL_TO_PASS: ["t.py::a"],
  PASS_TO_PASS: [],
});
const RECORDS = [
  ...[1, 2, 3].map((number) => record("pallets/flask", number)),
  ...[1, 2].map((number) => record("psf/requests", number)),
];

function mortise(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, "tasks", ...args], {
    encoding: "utf8",
    cwd: directory,
  });
  return { status, stdout, stderr };
}

const answer = (stdout: string) => JSON.parse(stdout.trim().split("\n").at(-1)!);

describe("import", () => {
  test("writes tasks that load, in the split and with the limits that are asked for", () => {
    const flags = ["--out", "tasks", "--split", "held_out", "--memory-mb", "512", "--verifier-timeout", "7"];
    const { status, stdout } = mortise("import", "records.jsonl", ...flags);
    expect(stdout).toBe(
      `5 rows: 5 of swe-bench\n5 written, 0 kept, 0 replaced in ${join(directory, "tasks")}\n`,
    );
    expect(status).toBe(0);
    const index = readTaskIndex(join(directory, "tasks"));
    expect(index).toHaveLength(5);
    for (const entry of index) {
      expect(entry.split).toBe("held_out");
      expect(loadIndexedTask(join(directory, "tasks"), entry)).toMatchObject({
        environment: { memoryMb: 512 },
        verifier: { timeoutSec: 7 },
      });
    }
  });

  test("refuses as one, in words and as JSON, and writes nothing", () => {
    writeFileSync(join(directory, "bad.jsonl"), `${JSON.stringify({ ...RECORDS[0], patch: "" })}\n`);
    const { status, stdout, stderr } = mortise("import", "bad.jsonl", "--out", "tasks", "--json");
    expect(status).toBe(2);
    expect(stderr).toBe(
      "MORTISE_TASK_RECORD (patch): A record of a data set cannot be used. bad.jsonl:1 (pallets__flask-1): patch is absent or empty.\n  fix: Add patch to the record. Or pass --skip-invalid to leave such rows out.\n",
    );
    expect(answer(stdout)).toMatchObject({
      schema: 1,
      error: { code: "MORTISE_TASK_RECORD", field: "patch" },
    });
    expect(existsSync(join(directory, "tasks"))).toBe(false);
  });

  test.each([
    ["no directory to write to", ["import", "records.jsonl"], "--out"],
    ["a format that is none", ["import", "records.jsonl", "--out", "x", "--format", "swe"], "--format"],
    ["a number that is none", ["import", "records.jsonl", "--out", "x", "--cpus", "0"], "--cpus"],
  ])("names %s", (_, args, field) => {
    const { status, stderr } = mortise(...args);
    expect(status).toBe(2);
    expect(stderr).toContain(`MORTISE_OPERATOR_USAGE (${field}`);
  });
});

describe("index", () => {
  beforeEach(() => {
    mortise("import", "records.jsonl", "--out", "tasks");
  });

  test("prints what each rule dropped, and writes the index of the rest", () => {
    writeFileSync(join(directory, "out.txt"), "psf__requests-2\n");
    const { status, stdout } = mortise(
      ...["index", "tasks", "--exclude", "out.txt", "--created-before", "2023-01-01"],
      ...["--patch-lines", "..3", "--per-repository", "1", "--out", "chosen", "--split", "small"],
    );
    expect(stdout.split("\n").slice(0, 6)).toEqual([
      "rule                       dropped  unknown  left",
      "sources                          0        0     5",
      "repeated                         0        0     5",
      "in out.txt                       1        0     4",
      "created before 2023-01-01        1        0     3",
      "patch lines ..3                  0        0     3",
    ]);
    expect(stdout).toContain("at most 1 a repository           1        0     2\n");
    expect(stdout).toContain(`2 tasks of 2 repositories in ${join(directory, "chosen")}\n`);
    expect(status).toBe(0);
    expect(readTaskIndex(join(directory, "chosen")).map(({ split }) => split)).toEqual(["small", "small"]);
    const [row] = readFileSync(join(directory, "chosen/index.jsonl"), "utf8").split("\n");
    expect(JSON.parse(row!).extra_info.path).toMatch(/^\.\.\/tasks\/pallets__flask-\d$/);
  });

  test("keeps a difficulty band of what was measured", () => {
    const rates = [
      { task: "pallets__flask-1", resolved: 0, attempts: 4 },
      { task: "pallets__flask-2", resolved: 1, attempts: 4 },
      { task: "pallets__flask-3", resolved: 4, attempts: 4 },
    ];
    writeFileSync(join(directory, "rates.jsonl"), rates.map((rate) => `${JSON.stringify(rate)}\n`).join(""));
    const { stdout } = mortise(
      ...[
        "index",
        "tasks",
        "--solve-rates",
        "rates.jsonl",
        "--solve-rate",
        "0.25..0.75",
        "--out",
        "band",
        "--json",
      ],
    );
    expect(answer(stdout)).toMatchObject({ schema: 1, tasks: 1 });
    expect(answer(stdout).funnel.at(-1)).toEqual({
      rule: "solve rate 0.25..0.75",
      dropped: 4,
      unknown: 2,
      left: 1,
    });
    expect(JSON.parse(readFileSync(join(directory, "band/index.jsonl"), "utf8")).extra_info).toMatchObject({
      task: "pallets__flask-2",
      solve_rate: 0.25,
    });
  });

  test("proves that nothing is in common with an evaluation set, or fails and writes nothing", () => {
    const flask = RECORDS.filter(({ repo }) => repo === "pallets/flask");
    writeFileSync(join(directory, "eval.jsonl"), flask.map((row) => `${JSON.stringify(row)}\n`).join(""));
    const failed = mortise("index", "tasks", "--disjoint-from", "eval.jsonl", "--out", "chosen");
    expect(failed.status).toBe(2);
    expect(failed.stderr).toContain(
      "MORTISE_TASK_OVERLAP (eval.jsonl): Two task sets that must be disjoint are not. eval.jsonl: 3 instances are in both: pallets__flask-1, pallets__flask-2, pallets__flask-3.",
    );
    expect(existsSync(join(directory, "chosen"))).toBe(false);
    const proven = mortise("index", "tasks", "--exclude-set", "eval.jsonl", "--disjoint-from", "eval.jsonl");
    expect(proven.stdout).toMatch(/^of eval\.jsonl +3 +0 +2$/m);
    expect(proven.stdout).toContain(
      "disjoint from eval.jsonl: no repository and no instance in common (2 tasks of 1 repositories, 3 of 1)",
    );
    expect(proven.status).toBe(0);
  });

  test("joins sources by weight, the same with the same seed", () => {
    mortise("index", "tasks", "--sample", "2", "--out", "two");
    const draw = (seed: string) =>
      answer(
        mortise("index", "tasks=1", "two/index.parquet=3", "--sample", "3", "--seed", seed, "--json").stdout,
      );
    expect(draw("7")).toEqual(draw("7"));
    expect(draw("7").funnel).toMatchObject([
      { left: 7 },
      { rule: "repeated", dropped: 2 },
      { rule: "sample of 3", left: 3 },
    ]);
  });

  test.each([
    ["an index that is there", ["tasks", "--out", "tasks"], "MORTISE_TASK_EXISTS"],
    ["a range that is none", ["tasks", "--patch-lines", "3..1"], "MORTISE_OPERATOR_USAGE (--patch-lines"],
    ["a solve rate above one", ["tasks", "--solve-rate", "1..4"], "MORTISE_OPERATOR_USAGE (--solve-rate"],
    [
      "a rule that leaves nothing",
      ["tasks", "--patch-lines", "99.."],
      'no task is left after "patch lines 99..", which dropped 5.',
    ],
    ["a directory without an index", ["."], "has neither index.jsonl nor index.parquet"],
  ])("refuses %s", (_, args, message) => {
    const { status, stderr } = mortise("index", ...args);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
  });
});
