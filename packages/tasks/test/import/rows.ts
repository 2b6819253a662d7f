/** Owns made-up rows of every data set, and files that hold them. No text of a real record. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { parquetWriteBuffer } from "hyparquet-writer";

export type Fields = Record<string, unknown>;

/** Repairs src/sum.py of the repository that `repository.ts` makes. */
export const GOLD = `diff --git a/src/sum.py b/src/sum.py
--- a/src/sum.py
+++ b/src/sum.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
`;

/** Changes one test file and adds another. */
export const TEST_PATCH = `diff --git a/tests/test_sum.py b/tests/test_sum.py
--- a/tests/test_sum.py
+++ b/tests/test_sum.py
@@ -1,2 +1,5 @@
 def test_zero():
     assert add(0, 0) == 0
+
+def test_two():
+    assert add(1, 1) == 2
diff --git a/tests/test_more.py b/tests/test_more.py
new file mode 100644
--- /dev/null
+++ b/tests/test_more.py
@@ -0,0 +1,2 @@
+def test_three():
+    assert add(1, 2) == 3
`;

const F2P = ["tests/test_sum.py::test_two", "tests/test_more.py::test_three"];
const P2P = ["tests/test_sum.py::test_zero"];

export const SWE_BENCH: Fields = {
  repo: "psf/requests",
  instance_id: "psf__requests-1",
  base_commit: "0123456789abcdef0123456789abcdef01234567",
  patch: GOLD,
  test_patch: TEST_PATCH,
  problem_statement: "add subtracts.",
  hints_text: "",
  created_at: "2023-02-06T19:20:34Z",
  version: "2.26",
  FAIL_TO_PASS: JSON.stringify(F2P),
  PASS_TO_PASS: JSON.stringify(P2P),
  environment_setup_commit: "0123456789abcdef0123456789abcdef01234567",
};

export const SWE_BENCH_5: Fields = {
  ...SWE_BENCH,
  repo: "elsewhere/sum",
  instance_id: "elsewhere__sum-2",
  FAIL_TO_PASS: F2P,
  PASS_TO_PASS: P2P,
  image: "registry.example/sum:2",
  eval_script: "#!/bin/bash\n: '>>>>> Start Test Output'\npytest -rA\n: '>>>>> End Test Output'",
  log_parser: "parse_log_pytest",
  eval_type: "pass_and_fail",
  image_assets: JSON.stringify({ problem_statement: [] }),
};

export const SWE_GYM: Fields = {
  ...SWE_BENCH,
  repo: "getmoto/moto",
  instance_id: "getmoto__moto-5406",
  version: "4.0",
  FAIL_TO_PASS: F2P,
  PASS_TO_PASS: P2P,
};

export const SWE_REBENCH: Fields = {
  ...SWE_BENCH,
  repo: "0b01001001/spectree",
  instance_id: "0b01001001__spectree-64",
  FAIL_TO_PASS: F2P,
  PASS_TO_PASS: P2P,
  created_at: "2020-10-12 13:21:50",
  install_config: {
    install: "pip install -e .[dev]",
    pre_install: ["apt-get update"],
    python: "3.9",
    packages: "requirements.txt",
    pip_packages: ["pytest"],
    test_cmd: "pytest --no-header -rA --tb=line --color=no",
    log_parser: "parse_log_pytest",
    no_use_env: null,
    env_vars: { MODE: "a b" },
  },
  meta: { is_lite: true },
};

export const SWE_REBENCH_2: Fields = {
  ...SWE_BENCH,
  repo: "elsewhere/sum",
  instance_id: "elsewhere__sum-3",
  language: "Python",
  image_name: "docker.io/swerebenchv2/elsewhere-sum:3-0123456",
  FAIL_TO_PASS: F2P.map((name) => `\u001b[1m${name}\u001b[0m`),
  PASS_TO_PASS: P2P,
  install_config: JSON.stringify({
    base_image_name: "python_base_310",
    install: ["pip install -e ."],
    test_cmd: ["export SEED=1", "sh run-tests.sh"],
    log_parser: "parse_log_pytest",
  }),
};

export const SWE_SMITH: Fields = {
  instance_id: "oauthlib__oauthlib.1fd52536.combine_file__09vlzwgc",
  repo: "swesmith/oauthlib__oauthlib.1fd52536",
  patch: GOLD,
  FAIL_TO_PASS: F2P,
  PASS_TO_PASS: P2P,
  image_name: "jyangballin/swesmith.x86_64.oauthlib_1776_oauthlib.1fd52536",
  problem_statement: "add subtracts.",
};

export const OPENSWE: Fields = {
  instance_id: "elsewhere__sum-4",
  repo: "elsewhere/sum",
  base_commit: SWE_BENCH.base_commit,
  end_commit: "89abcdef0123456789abcdef0123456789abcdef",
  patch: GOLD,
  test_patch: TEST_PATCH,
  problem_statement: "add subtracts.",
  language: "python",
  Dockerfile: "FROM python:3.10\nWORKDIR /\nRUN true\nWORKDIR /testbed/\n",
  eval_script: "cd /testbed\npytest -rA\necho OPENSWE_EXIT_CODE=$?",
};

export const OPENSWE_LEGO: Fields = {
  ...OPENSWE,
  instance_id: "elsewhere__sum-5",
  FAIL_TO_PASS: JSON.stringify(F2P),
  PASS_TO_PASS: JSON.stringify(P2P),
  docker_image: "registry.example/openswe:5",
  install_config: { log_parser: "parse_log_pytest" },
};

export const EVERY_VARIANT: readonly (readonly [string, Fields])[] = [
  ["swe-bench", SWE_BENCH],
  ["swe-bench", SWE_BENCH_5],
  ["swe-gym", SWE_GYM],
  ["swe-rebench", SWE_REBENCH],
  ["swe-rebench-v2", SWE_REBENCH_2],
  ["swe-smith", SWE_SMITH],
  ["openswe", OPENSWE_LEGO],
];

export function writeJsonl(directory: string, name: string, rows: readonly Fields[]): string {
  const path = join(directory, name);
  writeFileSync(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return path;
}

/** Text columns as text, lists of text as lists, anything else as JSON; `codec` as data sets use them. */
export function writeParquet(
  directory: string,
  name: string,
  rows: readonly Fields[],
  codec: "SNAPPY" | "GZIP" = "SNAPPY",
): string {
  const names = [...new Set(rows.flatMap(Object.keys))].reverse();
  const columnData = names.map((column) => ({ name: column, data: rows.map((row) => row[column] ?? null) }));
  const path = join(directory, name);
  const lists = names.filter((column) => rows.some((row) => Array.isArray(row[column])));
  const schema = [
    { name: "root", num_children: names.length },
    ...names.flatMap((column) => (lists.includes(column) ? listColumn(column) : [textColumn(column)])),
  ];
  const data = columnData.map(({ name: column, data: values }) => ({
    name: column,
    data: values.map((value) =>
      value === null || typeof value === "string" || Array.isArray(value) ? value : JSON.stringify(value),
    ),
  }));
  const compressors = { GZIP: (bytes: Uint8Array) => new Uint8Array(gzipSync(bytes)) };
  const bytes = parquetWriteBuffer({ columnData: data, schema, codec, compressors, rowGroupSize: 2 });
  writeFileSync(path, new Uint8Array(bytes));
  return path;
}

function textColumn(name: string) {
  return {
    name,
    type: "BYTE_ARRAY" as const,
    converted_type: "UTF8" as const,
    repetition_type: "OPTIONAL" as const,
  };
}

function listColumn(name: string) {
  return [
    { name, converted_type: "LIST" as const, num_children: 1, repetition_type: "OPTIONAL" as const },
    { name: "list", num_children: 1, repetition_type: "REPEATED" as const },
    textColumn("element"),
  ];
}
