/**
 * An imported task of a small project, run by real pip and pytest without a network: a package that is built in
 * isolation cannot be installed there, and the script installs it nevertheless. And one of R2E-Gym, whose tests come
 * from the record into a work tree without them. Packages come from PyPI once; where
 * they or a network namespace are not to be had, this says so.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { canCloseNetwork, gradeTaskLog, loadTask, type Task } from "../../src/index.js";
import { SWE_REBENCH } from "./rows.js";
import { EXECUTION, FILE_DIFF, R2E } from "./rows-of-others.js";
import { importRows, workplace } from "./workplace.js";

const python = mkdtempSync(join(tmpdir(), "mortise-python-"));
afterAll(() => rmSync(python, { recursive: true, force: true }));

function hasPython(): boolean {
  const made = spawnSync("python3", ["-m", "venv", python], { stdio: "ignore", timeout: 60_000 });
  if (made.status !== 0) return false;
  const packages = ["pytest==8.4.2", "setuptools==80.9.0", "wheel==0.45.1"];
  const install = ["-m", "pip", "install", "--quiet", ...packages];
  return spawnSync(join(python, "bin/python"), install, { stdio: "ignore", timeout: 120_000 }).status === 0;
}

const missing = !canCloseNetwork()
  ? "this host allows no network namespace"
  : hasPython()
    ? undefined
    : "no python3 with venv, or PyPI cannot be reached";

const FILES = {
  "pyproject.toml":
    '[build-system]\nrequires = ["setuptools", "wheel"]\nbuild-backend = "setuptools.build_meta"\n[project]\nname = "summ"\nversion = "1"\n',
  "src/summ/__init__.py": "def add(a, b):\n    return a - b\n",
  "tests/test_add.py":
    'import pytest\nfrom summ import add\n\n\n@pytest.mark.parametrize("n", [0, 1])\ndef test_zero(n):\n    assert add(n, 0) == n\n',
};

/** Test files as R2E-Gym's records hold them; the last test fails with the repair too. */
const R2E_TESTS = [
  `import pytest
from src.sum import add


def test_two():
    assert add(1, 1) == 2


class TestSum:
    @pytest.mark.parametrize("n", ["a b"])
    def test_case(self, n):
        assert add(2, 1) == 3
`,
  "def test_zero():\n    pass\n\n\ndef test_never():\n    assert False\n",
];

const ended = { exitCode: 0, signal: "", timedOut: false, outOfMemory: false, outputTruncated: false };

describe.skipIf(missing !== undefined)(
  `real pip and pytest${missing === undefined ? "" : ` (absent: ${missing})`}`,
  () => {
    const place = workplace();
    const repository = () => join(place.directory, "repository");
    const git = (...args: string[]) =>
      execFileSync("git", ["-C", repository(), ...args], { encoding: "utf8" });
    const put = (path: string, content: string) => {
      mkdirSync(dirname(join(repository(), path)), { recursive: true });
      writeFileSync(join(repository(), path), content);
    };
    /** The patch of a change that is undone again. */
    const patchOf = (path: string, content: string) => {
      put(path, content);
      const patch = git("diff");
      git("checkout", "--quiet", ".");
      return patch;
    };

    async function taskOf(): Promise<Task> {
      mkdirSync(repository());
      git("init", "--quiet");
      for (const [path, content] of Object.entries(FILES)) put(path, content);
      git("add", "--all");
      git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "base");
      const row = {
        ...SWE_REBENCH,
        instance_id: "own__summ-1",
        base_commit: git("rev-parse", "HEAD").trim(),
        patch: patchOf("src/summ/__init__.py", "def add(a, b):\n    return a + b\n"),
        test_patch: patchOf(
          "tests/test_add.py",
          `${FILES["tests/test_add.py"]}\n\ndef test_two():\n    assert add(1, 1) == 2\n`,
        ),
        FAIL_TO_PASS: ["tests/test_add.py::test_two"],
        PASS_TO_PASS: ["tests/test_add.py::test_zero[0]"],
        workdir: repository(),
        install_config: {
          install: "python -m pip install .",
          test_cmd: "pytest -rA",
          log_parser: "parse_log_pytest",
        },
      };
      await importRows(place, [row]);
      return loadTask(join(place.directory, "out", "own__summ-1"));
    }

    function run(script: string): Buffer {
      const { stdout } = spawnSync("unshare", ["--map-root-user", "--net", "sh", script], {
        cwd: repository(),
        env: { ...process.env, PATH: `${join(python, "bin")}:${process.env.PATH}` },
      });
      return stdout;
    }

    test("nothing does not resolve it, the repair does", { timeout: 120_000 }, async () => {
      const task = await taskOf();
      const { expected } = task.tests;
      if (expected?.format !== "log") throw new Error("it has no log to grade");
      const before = run(task.tests.script);
      expect(gradeTaskLog(task, expected, { ...ended, stdout: before })).toEqual({
        outcome: "unresolved",
        failed: ["tests/test_add.py::test_two"],
      });
      expect(before.toString()).toContain("+ PIP_NO_BUILD_ISOLATION=0");
      run(task.solution!.script);
      expect(readFileSync(join(repository(), "src/summ/__init__.py"), "utf8")).toContain("a + b");
      const after = run(task.tests.script);
      expect(gradeTaskLog(task, expected, { ...ended, stdout: after })).toEqual({
        outcome: "resolved",
        failed: [],
      });
    });

    test("R2E-Gym: the record's own files are tested, by the names its logs have", {
      timeout: 120_000,
    }, async () => {
      mkdirSync(repository());
      git("init", "--quiet");
      put("src/sum.py", FILE_DIFF.old_file_content);
      git("add", "--all");
      git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "base");
      symlinkSync(python, join(repository(), ".venv"));
      const execution = { ...EXECUTION, test_file_codes: R2E_TESTS };
      const row = { ...R2E, workdir: repository(), execution_result_content: JSON.stringify(execution) };
      await importRows(place, [row]);
      const task = loadTask(join(place.directory, "out", `sympy-${String(R2E.commit_hash)}`));
      const { expected } = task.tests;
      if (expected?.format !== "log") throw new Error("it has no log to grade");
      expect(gradeTaskLog(task, expected, { ...ended, stdout: run(task.tests.script) })).toEqual({
        outcome: "unresolved",
        failed: ["r2e_tests/test_1.py::test_two", "r2e_tests/test_1.py::TestSum::test_case[a b]"],
      });
      run(task.solution!.script);
      expect(gradeTaskLog(task, expected, { ...ended, stdout: run(task.tests.script) })).toEqual({
        outcome: "resolved",
        failed: [],
      });
    });
  },
);
