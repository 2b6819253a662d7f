/**
 * Owns made-up rows of data sets with columns of their own, by the schemas their repositories document. No text of
 * a real record.
 */
import { type Fields, GOLD, SWE_BENCH_5, TEST_PATCH } from "./rows.js";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";

export const MULTIMODAL: Fields = {
  ...SWE_BENCH_5,
  repo: "chartjs/Chart.js",
  instance_id: "chartjs__Chart.js-8162",
  problem_statement: "The bar is red.\n![red](https://pictures.example/red.png)\n",
  log_parser: "parse_log_chart_js",
  image_assets: JSON.stringify({
    problem_statement: ["https://pictures.example/red.png", "https://pictures.example/blue.png"],
    patch: [],
    test_patch: [],
  }),
};

export const PRO: Fields = {
  repo: "elsewhere/sum",
  instance_id: `instance_elsewhere__sum-${COMMIT}-vnan`,
  base_commit: COMMIT,
  patch: GOLD,
  test_patch: TEST_PATCH,
  problem_statement: "add subtracts.",
  requirements: "- add returns the sum",
  interface: "No new interfaces are introduced.",
  repo_language: "python",
  fail_to_pass: "['tests/test_sum.py::test_two']",
  pass_to_pass: `["tests/test_sum.py::test_zero"]`,
  issue_specificity: "[]",
  issue_categories: "[]",
  before_repo_set_cmd: `git reset --hard ${COMMIT}`,
  selected_test_files_to_run: "['tests/test_sum.py']",
  dockerhub_tag: `elsewhere.sum-elsewhere__sum-${COMMIT}`,
  eval_script: "#!/bin/bash\npytest -rA tests/test_sum.py\n",
  log_parser: "pytest",
};

const FIXED = { run: "NONE", test: "FAIL", fix: "PASS" };
const NEW = { run: "NONE", test: "NONE", fix: "PASS" };
const SKIPPED = { run: "SKIP", test: "SKIP", fix: "PASS" };
const RESULT = {
  passed_count: 0,
  failed_count: 0,
  skipped_count: 0,
  passed_tests: [],
  failed_tests: [],
  skipped_tests: [],
};

export const MULTI: Fields = {
  org: "cli",
  repo: "cli",
  number: 7,
  state: "closed",
  title: "Repair add",
  body: "Uses a plus.",
  base: { label: "cli:trunk", ref: "trunk", sha: COMMIT },
  resolved_issues: [
    { number: 5, title: "add subtracts", body: "add(1, 1) is 0.\n" },
    { number: 6, title: "No sums", body: null },
  ],
  fix_patch: GOLD,
  test_patch: TEST_PATCH,
  tag: "",
  number_interval: "",
  lang: "go",
  hints: "",
  fixed_tests: { TestTwo: FIXED, TestThree: NEW, "TestFour/a": SKIPPED },
  p2p_tests: { TestZero: { run: "PASS", test: "PASS", fix: "PASS" }, TestOfAnotherRow: null },
  f2p_tests: { TestTwo: FIXED },
  s2p_tests: { "TestFour/a": SKIPPED },
  n2p_tests: { TestThree: NEW },
  run_result: RESULT,
  test_patch_result: RESULT,
  fix_patch_result: RESULT,
};

const file = (path: string) => ({ path });
const line = (type: string, content: string) => ({ type, content });

/** As its tools take `git diff` apart, with the line of context they make of the diff's end. */
export const FILE_DIFF = {
  old_file_content: "def add(a, b):\n    return a - b\n",
  new_file_content: "def add(a, b):\n    return a + b\n",
  header: { file: file("src/sum.py"), misc_line: null },
  index_line: { old_commit_hash: "1111111", new_commit_hash: "2222222", mode: "100644" },
  is_binary_file: false,
  binary_line: null,
  minus_file: file("a/src/sum.py"),
  plus_file: file("b/src/sum.py"),
  hunks: [
    {
      descriptor: { old_range: { start: 1, length: 2 }, new_range: { start: 1, length: 2 }, section: "" },
      line_group: {
        all_lines: [
          line("context", "def add(a, b):"),
          line("deleted", "    return a - b"),
          line("added", "    return a + b"),
          line("context", ""),
        ],
      },
      modified_entities: [],
    },
  ],
};

const elsewhere = (path: string) => ({ ...FILE_DIFF, header: { file: file(path), misc_line: null } });

export const PARSED_COMMIT = {
  file_diffs: [FILE_DIFF, elsewhere("sympy/tests/test_sum.py"), elsewhere("doc/sum.rst")],
  old_commit_hash: COMMIT,
  new_commit_hash: "89abcdef0123456789abcdef0123456789abcdef",
  commit_message: "Repair add",
  commit_date: "2019-05-04T10:00:00+02:00",
  metadata: {},
};

const summary = (...lines: string[]) =>
  ["==== test session starts ====", "==== short test summary info ====", ...lines, ""].join("\n");

export const EXECUTION = {
  repo_name: "sympy",
  new_commit_hash: PARSED_COMMIT.new_commit_hash,
  test_file_codes: ["def test_two():\n    assert add(1, 1) == 2\n", "def test_zero():\n    pass"],
  test_file_names: ["test_1.py", "test_2.py"],
  setup_res_code: 0,
  setup_res_stdout: "",
  setup_res_stderr: "",
  new_commit_res_code: 1,
  new_commit_res_stdout: summary(
    "PASSED r2e_tests/test_1.py::test_two",
    "PASSED r2e_tests/test_1.py::TestSum::test_case[a b]",
    "PASSED r2e_tests/test_2.py::test_zero",
    "FAILED r2e_tests/test_2.py::test_never - XFail: test_never",
    "==== 1 failed, 3 passed in 0.57s ====",
  ),
  new_commit_res_stderr: "",
  old_commit_res_code: 1,
  old_commit_res_stdout: summary(
    "PASSED r2e_tests/test_2.py::test_zero",
    "FAILED r2e_tests/test_1.py::test_two - assert 0 == 2",
    "ERROR r2e_tests/test_1.py::TestSum::test_case[a b] - NameError",
    "FAILED r2e_tests/test_2.py::test_never - XFail: test_never",
  ),
  old_commit_res_stderr: "",
};

export const EXPECTED_OUTPUT = {
  test_two: "PASSED",
  "\u001b[1mTestSum.test_case[a b]\u001b[0m": "PASSED",
  test_zero: "PASSED",
  test_never: "FAILED",
};

export const R2E: Fields = {
  repo_name: "sympy",
  docker_image: `namanjain12/sympy_final:${PARSED_COMMIT.new_commit_hash}`,
  commit_hash: PARSED_COMMIT.new_commit_hash,
  parsed_commit_content: JSON.stringify(PARSED_COMMIT),
  execution_result_content: JSON.stringify(EXECUTION),
  modified_files: ["src/sum.py"],
  modified_entity_summaries: [],
  relevant_files: ["src/sum.py"],
  num_non_test_files: 1,
  num_non_test_func_methods: 1,
  num_non_test_lines: 2,
  prompt: "Write an issue.",
  problem_statement: "[ISSUE]\nadd subtracts.\n[/ISSUE]",
  expected_output_json: JSON.stringify(EXPECTED_OUTPUT),
};
