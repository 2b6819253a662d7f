/** Data sets with columns of their own: which one a row is of, what of it ends in the task, what is refused. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gradeLog, readRecord } from "@mortise/grading";
import { describe, expect, test } from "vitest";
import { loadTask } from "../../src/index.js";
import { type Fields, GOLD, SWE_BENCH_5, TEST_PATCH, writeParquet } from "./rows.js";
import {
  EXECUTION,
  EXPECTED_OUTPUT,
  FILE_DIFF,
  MULTI,
  MULTIMODAL,
  PARSED_COMMIT,
  PRO,
  R2E,
} from "./rows-of-others.js";
import { importFile, importRows, refusal, workplace } from "./workplace.js";

const place = workplace();

function taskAt(id: string) {
  const task = loadTask(join(place.directory, "out", id));
  const read = (path: string) => readFileSync(join(task.directory, path), "utf8");
  return { task, read, record: readRecord(JSON.parse(read("tests/config.json")), "config.json") };
}

async function imported(row: Fields, id: string) {
  const report = await importRows(place, [row]);
  expect(report).toMatchObject({ rows: 1, written: 1, unknownColumns: [] });
  return { report, ...taskAt(id) };
}

describe("SWE-bench Multimodal", () => {
  test("is told by its pictures; those the issue does not show are added to it as links", async () => {
    const { report, task, record } = await imported(MULTIMODAL, "chartjs__Chart-js-8162");
    expect(report.datasets).toEqual({ "swe-bench-multimodal": 1 });
    expect(task.instruction).toBe(
      "The bar is red.\n![red](https://pictures.example/red.png)\n\nImages of this issue:\n- https://pictures.example/blue.png\n",
    );
    expect(task.environment).toMatchObject({ dockerImage: MULTIMODAL.image, workdir: "/testbed" });
    expect(task.metadata).toMatchObject({ language: "javascript" });
    expect(record.parser.name).toBe("chart-js");
  });

  test("pictures may be objects with a link, and all of them in the issue already", async () => {
    const row = {
      ...MULTIMODAL,
      image_assets: { problem_statement: [{ path: "red.png", url: "https://pictures.example/red.png" }] },
    };
    const { task } = await imported(row, "chartjs__Chart-js-8162");
    expect(task.instruction).toBe(MULTIMODAL.problem_statement);
  });

  test("without a picture, a record of version 5 is SWE-bench's", async () => {
    const row = { ...SWE_BENCH_5, image_assets: { problem_statement: [], patch: null, test_patch: [] } };
    const { datasets } = await importRows(place, [row]);
    expect(datasets).toEqual({ "swe-bench": 1 });
  });

  const assets = (value: unknown) => ({ ...MULTIMODAL, image_assets: value });
  test.each<[string, Fields, string]>([
    [
      "pictures the tests compare with",
      assets({ test_patch: [{ path: "a.png", url: "https://pictures.example/a.png" }] }),
      "image_assets.test_patch names files that no text patch holds",
    ],
    [
      "pictures of the repair",
      assets({ patch: ["https://pictures.example/a.png"] }),
      "image_assets.patch names files",
    ],
    [
      "pictures that are no links",
      assets({ problem_statement: ["file:///etc/passwd"] }),
      "image_assets.problem_statement is no list of links",
    ],
    ["no image", { ...MULTIMODAL, image: "" }, "image is absent or empty"],
    ["no script", { ...MULTIMODAL, eval_script: null }, "eval_script is absent or empty"],
    ["no parser", { ...MULTIMODAL, log_parser: null }, "log_parser is absent or empty"],
    [
      "the private test split",
      { ...MULTIMODAL, patch: "", test_patch: "" },
      "patch is absent or empty; rows.jsonl:1 (chartjs__Chart.js-8162): test_patch is absent or empty",
    ],
  ])("refuses %s", async (_, row, message) => {
    const { code, message: said } = await refusal(() => importRows(place, [row]));
    expect(code).toBe("MORTISE_TASK_RECORD");
    expect(said).toContain(message);
  });
});

describe("SWE-bench Pro", () => {
  const id = String(PRO.instance_id);

  test("image by its tag, statement with requirements and interfaces, lists as Python prints them", async () => {
    const { report, task, read } = await imported(PRO, id);
    expect(report.datasets).toEqual({ "swe-bench-pro": 1 });
    expect(task.environment).toMatchObject({
      dockerImage: `jefzda/sweap-images:${PRO.dockerhub_tag}`,
      workdir: "/app",
    });
    expect(task.instruction).toBe(
      "add subtracts.\n\nRequirements:\n- add returns the sum\n\nNew interfaces introduced:\nNo new interfaces are introduced.\n",
    );
    expect(task.tests.expected).toMatchObject({
      parser: "pytest",
      failToPass: ["tests/test_sum.py::test_two"],
      passToPass: ["tests/test_sum.py::test_zero"],
    });
    expect(read("tests/eval.sh")).toBe(PRO.eval_script);
  });

  test.each<[string, Fields, string, string]>([
    [
      "a record as it is published",
      { ...PRO, eval_script: undefined, log_parser: undefined },
      "log_parser is absent: records of SWE-bench Pro do not say how tests are run and read",
      "Add log_parser, which names the parser of the tests' log; scaleapi/SWE-bench_Pro-os has the originals",
    ],
    ["no tag", { ...PRO, dockerhub_tag: null }, "dockerhub_tag is absent or empty", "Add dockerhub_tag"],
    [
      "a tag that is an image",
      { ...PRO, dockerhub_tag: "jefzda/sweap-images:a" },
      'dockerhub_tag is no tag: "jefzda/sweap-images:a"',
      "Give the tag alone",
    ],
    [
      "no language",
      { ...PRO, repo_language: null },
      "repo_language is absent or empty",
      "Add repo_language to the record.",
    ],
  ])("refuses %s", async (_, row, message, fix) => {
    const error = await refusal(() => importRows(place, [row]));
    expect(error.message).toContain(message);
    expect(error.fix).toContain(fix);
  });
});

describe("Multi-SWE-bench", () => {
  test("issues, tests of three lists, an image without the patches that are in the published one", async () => {
    const { report, task, read, record } = await imported(MULTI, "cli__cli-7");
    expect(report.datasets).toEqual({ "multi-swe-bench": 1 });
    expect(task.instruction).toBe("add subtracts\n\nadd(1, 1) is 0.\n\nNo sums\n");
    expect(task.metadata).toMatchObject({
      instance_id: "cli__cli-7",
      repo: "cli/cli",
      language: "go",
      base_commit: (MULTI.base as { sha: string }).sha,
    });
    expect(read("environment/Dockerfile")).toBe(
      "FROM mswebench/cli_m_cli:pr-7\nRUN rm -f /home/fix.patch /home/test.patch /home/fix-run.sh\n",
    );
    expect(task.environment.workdir).toBe("/home/cli");
    expect(read("solution/gold.patch")).toBe(GOLD);
    expect(read("tests/test.patch")).toBe(TEST_PATCH);
    expect(read("tests/eval.sh")).toContain("\nbash /home/run.sh\ncode=$?\n");
    expect(record).toMatchObject({
      failToPass: ["TestTwo", "TestFour/a", "TestThree"],
      passToPass: ["TestZero"],
      parser: { name: "gotest" },
    });
  });

  test("groups may be JSON, and an instance id the record's own", async () => {
    const json = Object.fromEntries(
      Object.entries(MULTI).map(([name, value]) => [
        name,
        name.endsWith("_tests") || name === "base" ? JSON.stringify(value) : value,
      ]),
    );
    const { record } = await imported({ ...json, instance_id: "cli__cli-pr-7" }, "cli__cli-pr-7");
    expect(record.failToPass).toEqual(["TestTwo", "TestFour/a", "TestThree"]);
  });

  test.each([
    ["BurntSushi", "ripgrep", "cargo", "burntsushi_m_ripgrep"],
    ["fmtlib", "fmt", "ctest", "fmtlib_m_fmt"],
  ])("%s/%s is read as %s", async (org, repo, parser, image) => {
    const { record, read } = await imported({ ...MULTI, org, repo }, `${org}__${repo}-7`);
    expect(record.parser.name).toBe(parser);
    expect(read("environment/Dockerfile")).toContain(`FROM mswebench/${image}:pr-7\n`);
  });

  test("a repository that is not known is taken with a script and a parser of the record", async () => {
    const row = { ...MULTI, org: "google", repo: "gson", lang: "java", eval_script: "mvn test" };
    const { record, read } = await imported({ ...row, log_parser: "maven" }, "google__gson-7");
    expect(record.parser.name).toBe("maven");
    expect(read("tests/eval.sh")).toBe("mvn test\n");
  });

  test.each<[string, Fields, string]>([
    [
      "a repository that is not known",
      { ...MULTI, org: "google", repo: "gson", lang: "java" },
      "eval_script or log_parser is absent, and how google/gson is tested and read is not known",
    ],
    [
      "a variant with a harness of its own",
      { ...MULTI, number_interval: "cli_9_to_1" },
      "how cli/cli (cli_9_to_1) is tested and read is not known",
    ],
    ["no commit", { ...MULTI, base: { label: "cli:trunk", ref: "trunk" } }, "base.sha is absent or empty"],
    ["a base that is none", { ...MULTI, base: "trunk" }, "base is no object"],
    ["no issue", { ...MULTI, resolved_issues: [] }, "resolved_issues is no list of issues with a title"],
    [
      "an issue without a title",
      { ...MULTI, resolved_issues: [{ number: 5, title: "a", body: "" }, { number: 6 }] },
      "resolved_issues is no list of issues with a title",
    ],
    ["no repair", { ...MULTI, fix_patch: "" }, "fix_patch is absent or empty"],
    ["no tests", { ...MULTI, test_patch: null }, "test_patch is absent or empty"],
    [
      "lists that contradict each other",
      { ...MULTI, n2p_tests: {} },
      "fixed_tests is not f2p_tests, s2p_tests, n2p_tests together",
    ],
    [
      "nothing that the repair fixes",
      { ...MULTI, fixed_tests: {}, f2p_tests: {}, s2p_tests: {}, n2p_tests: {} },
      "f2p_tests has no test, nor have s2p_tests and n2p_tests",
    ],
    [
      "an image that would be more than one line of a Dockerfile",
      { ...MULTI, docker_image: "a:b\nRUN something" },
      'docker_image is no image: "a:b\\nRUN something"',
    ],
    [
      "a work tree that is no absolute path",
      { ...MULTI, workdir: "../elsewhere" },
      'workdir is no absolute path: "../elsewhere"',
    ],
    ["a list that is none", { ...MULTI, p2p_tests: ["TestZero"] }, "p2p_tests is no object"],
  ])("refuses %s", async (_, row, message) => {
    const error = await refusal(() => importRows(place, [row]));
    expect(error.code).toBe("MORTISE_TASK_RECORD");
    expect(error.message).toContain(message);
  });
});

describe("R2E-Gym", () => {
  const id = `sympy-${PARSED_COMMIT.new_commit_hash}`;
  const withCommit = (changes: object) => ({
    ...R2E,
    parsed_commit_content: JSON.stringify({ ...PARSED_COMMIT, ...changes }),
  });
  const withRun = (changes: object) => ({
    ...R2E,
    execution_result_content: JSON.stringify({ ...EXECUTION, ...changes }),
  });

  test("repair of the commit, tests of the record, results of both runs", async () => {
    const { report, task, read, record } = await imported(R2E, id);
    expect(report.datasets).toEqual({ "r2e-gym": 1 });
    expect(task.instruction).toBe("add subtracts.\n");
    expect(task.metadata).toMatchObject({
      instance_id: id,
      repo: "sympy/sympy",
      language: "python",
      base_commit: PARSED_COMMIT.old_commit_hash,
      created_at: "2019-05-04T08:00:00.000Z",
      patch_files: 1,
      patch_lines: 2,
    });
    expect(read("environment/Dockerfile")).toContain(
      `FROM ${R2E.docker_image}\nWORKDIR /testbed\nRUN rm -rf `,
    );
    expect(read("environment/Dockerfile")).toContain("/r2e_tests r2e_tests run_tests.sh ");
    expect(read("tests/eval.sh")).toContain(
      "\nexport PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning'\n",
    );
    expect(read("tests/eval.sh")).toContain(
      "\n.venv/bin/python -W ignore -m pytest -rA r2e_tests\ncode=$?\n",
    );
    expect(record).toMatchObject({
      failToPass: ["r2e_tests/test_1.py::test_two", "r2e_tests/test_1.py::TestSum::test_case[a b]"],
      passToPass: ["r2e_tests/test_2.py::test_zero"],
      parser: { name: "pytest" },
    });
  });

  test("the record is graded by its own logs: resolved with the repair, unresolved without", async () => {
    const { record } = await imported(R2E, id);
    const marked = (log: string) => `>>>>> Start Test Output\n${log}\n>>>>> End Test Output\n`;
    expect(gradeLog(record, marked(EXECUTION.new_commit_res_stdout)).verdict).toBe("resolved");
    expect(gradeLog(record, marked(EXECUTION.old_commit_res_stdout)).verdict).toBe("unresolved");
  });

  test("git applies the repair and the tests, also an empty file and one without a last newline", async () => {
    const { read } = await imported(R2E, id);
    const repository = join(place.directory, "repository");
    mkdirSync(join(repository, "src"), { recursive: true });
    writeFileSync(join(repository, "src/sum.py"), FILE_DIFF.old_file_content);
    const git = (...args: string[]) => execFileSync("git", args, { cwd: repository });
    git("init", "--quiet");
    for (const path of ["solution/gold.patch", "tests/test.patch"]) {
      writeFileSync(join(place.directory, "one.patch"), read(path));
      git("apply", join(place.directory, "one.patch"));
    }
    const content = (path: string) => readFileSync(join(repository, path), "utf8");
    expect(content("src/sum.py")).toBe(FILE_DIFF.new_file_content);
    expect(content("r2e_tests/__init__.py")).toBe("");
    expect(content("r2e_tests/test_1.py")).toBe(EXECUTION.test_file_codes[0]);
    expect(content("r2e_tests/test_2.py")).toBe(EXECUTION.test_file_codes[1]);
  });

  test("tornado runs the runner of its record, orange3 needs a display", async () => {
    const { read } = await imported({ ...R2E, repo_name: "tornado" }, id.replace("sympy", "tornado"));
    expect(read("tests/eval.sh")).toContain(
      "\n.venv/bin/python -W ignore r2e_tests/tornado_unittest_runner.py\n",
    );
    await importRows(place, [{ ...R2E, repo_name: "orange3" }]);
    const orange = taskAt(id.replace("sympy", "orange3"));
    expect(orange.read("tests/eval.sh")).toContain("\nxvfb-run --auto-servernum .venv/bin/python ");
  });

  test("a parquet file gives the same task", async () => {
    // The fixture's writer has no column of numbers, and none of them is read.
    const columns = Object.entries(R2E).filter(([, value]) => typeof value !== "number");
    const row = Object.fromEntries(columns);
    await importRows(place, [row]);
    const path = writeParquet(place.directory, "rows.parquet", [row]);
    const report = await importFile(path, join(place.directory, "out"));
    expect(report).toMatchObject({ datasets: { "r2e-gym": 1 }, kept: 1 });
  });

  test.each<[string, Fields, string]>([
    [
      "a project that is not known",
      { ...R2E, repo_name: "pillow" },
      'repo_name is "pillow": how it is tested is not known, or its records lack a file',
    ],
    ["no commit", { ...R2E, parsed_commit_content: "" }, "parsed_commit_content is absent or empty"],
    ["a commit that is none", { ...R2E, parsed_commit_content: "{" }, "parsed_commit_content is no object"],
    [
      "a commit of another shape",
      withCommit({ old_commit_hash: 7 }),
      "parsed_commit_content.old_commit_hash is not as the data set has it",
    ],
    [
      "a commit that changes tests alone",
      withCommit({ file_diffs: PARSED_COMMIT.file_diffs.slice(1) }),
      "parsed_commit_content.file_diffs change no Python file that is no test",
    ],
    [
      "a hunk that lacks lines",
      withCommit({
        file_diffs: [
          {
            ...FILE_DIFF,
            hunks: FILE_DIFF.hunks.map((hunk) => ({ ...hunk, line_group: { all_lines: [] } })),
          },
        ],
      }),
      "parsed_commit_content.file_diffs cannot be read: src/sum.py has a hunk without the lines it counts",
    ],
    [
      "a run without a log",
      withRun({ old_commit_res_stdout: null }),
      "execution_result_content.old_commit_res_stdout is not as the data set has it",
    ],
    [
      "a test file outside its directory",
      withRun({ test_file_names: ["../a.py", "b.py"] }),
      "execution_result_content.test_file_names.0 is not as the data set has it",
    ],
    [
      "names without files",
      withRun({ test_file_codes: ["pass\n"] }),
      "execution_result_content.test_file_codes has 1 files for 2 names",
    ],
    [
      "two test files with one name",
      withRun({ test_file_names: ["test_1.py", "test_1.py"] }),
      "execution_result_content.test_file_names names 1 files twice",
    ],
    [
      "results of tests no log has",
      { ...R2E, expected_output_json: JSON.stringify({ ...EXPECTED_OUTPUT, test_other: "PASSED" }) },
      'expected_output_json has 1 tests that execution_result_content does not have, the first "test_other"',
    ],
    [
      "results that the repair does not change",
      { ...R2E, expected_output_json: JSON.stringify({ test_zero: "PASSED" }) },
      "expected_output_json has no test that passes with the repair alone",
    ],
    ["no results", { ...R2E, expected_output_json: null }, "expected_output_json is absent or empty"],
    ["no image", { ...R2E, docker_image: null }, "docker_image is absent or empty"],
  ])("refuses %s", async (_, row, message) => {
    const error = await refusal(() => importRows(place, [row]));
    expect(error.code).toBe("MORTISE_TASK_RECORD");
    expect(error.message).toContain(message);
  });
});
