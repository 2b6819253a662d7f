/**
 * Owns small tasks of real Python, as an import writes them: a work tree with a bug, a test patch, a repair, the log of
 * a real pytest. Does not run anything.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { taskDigest } from "@mortise/tasks";
import { DEFAULT_LIMITS, importTasks, openRows } from "@mortise/tasks/import";
import type { KeptImage } from "./kept-image.js";
import { layoutOver } from "./python-image.js";

export interface PythonProject {
  /** The work tree with the bug. */
  readonly files: Readonly<Record<string, string>>;
  /** What the repair changes, whole files. */
  readonly repaired: Readonly<Record<string, string>>;
  /** What the test patch changes, whole files. */
  readonly tests: Readonly<Record<string, string>>;
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  /** Shell lines before the tests. */
  readonly install?: string;
  readonly testCommand?: string;
  /** A directory that is copied first. */
  readonly tree?: string;
  /** Of another runner than pytest: the parser of its log, and its language. Its command is run as it is. */
  readonly other?: { readonly parser: string; readonly language: string };
  readonly memoryMb?: number;
}

export interface WrittenTask {
  readonly id: string;
  readonly digest: string;
}

/** A package, its tests, a conftest and configuration, with a bug in `add`. */
export const CALC: PythonProject = {
  files: {
    "calc/__init__.py": "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n",
    "tests/test_calc.py":
      "import pytest\n\nfrom calc import add, sub\n\n\ndef test_sub(one):\n    assert sub(3, one) == 2\n\n\n@pytest.mark.parametrize('n', [0, 7])\ndef test_zero(n):\n    assert add(n, 0) == n\n",
    "conftest.py": "import pytest\n\n\n@pytest.fixture\ndef one():\n    return 1\n",
    "setup.cfg": "[tool:pytest]\ntestpaths = tests\n",
  },
  repaired: {
    "calc/__init__.py": "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n",
  },
  tests: {
    "tests/test_calc.py":
      "import pytest\n\nfrom calc import add, sub\n\n\ndef test_sub(one):\n    assert sub(3, one) == 2\n\n\n@pytest.mark.parametrize('n', [0, 7])\ndef test_zero(n):\n    assert add(n, 0) == n\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    "tests/test_more.py": "from calc import add\n\n\ndef test_negative():\n    assert add(-1, 2) == 1\n",
  },
  failToPass: ["tests/test_calc.py::test_add", "tests/test_more.py::test_negative"],
  passToPass: [
    "tests/test_calc.py::test_sub",
    "tests/test_calc.py::test_zero[0]",
    "tests/test_calc.py::test_zero[7]",
  ],
};

/** Imports a project as a record of SWE-rebench and gives it its image. Rejects where git is absent. */
export async function writePythonTask(
  tasks: string,
  id: string,
  project: PythonProject,
  image: KeptImage,
): Promise<WrittenTask> {
  mkdirSync(tasks, { recursive: true });
  const scratch = mkdtempSync(path.join(tasks, ".python-task-"));
  try {
    const tree = path.join(scratch, "tree");
    if (project.tree === undefined) mkdirSync(tree);
    else cpSync(project.tree, tree, { recursive: true });
    const git = (...argv: string[]) =>
      execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@localhost", ...argv], {
        cwd: tree,
        encoding: "utf8",
      });
    git("init", "--quiet", "-b", "main");
    put(tree, project.files);
    git("add", "--all");
    git("commit", "--quiet", "-m", "base");
    const diffOf = (files: Readonly<Record<string, string>>) => {
      put(tree, files);
      git("add", "--all");
      const diff = git("diff", "--cached");
      git("reset", "--quiet", "--hard");
      return diff;
    };
    const record = {
      instance_id: id,
      repo: "own/calc",
      base_commit: git("rev-parse", "HEAD").trim(),
      problem_statement: "Repair the calculator.",
      patch: diffOf(project.repaired),
      test_patch: diffOf(project.tests),
      FAIL_TO_PASS: [...project.failToPass],
      PASS_TO_PASS: [...project.passToPass],
      image_name: "own/image:1",
      ...(project.other === undefined ? {} : { language: project.other.language, workdir: "/testbed" }),
      install_config: {
        ...(project.install === undefined ? {} : { install: project.install }),
        test_cmd: project.testCommand ?? "pytest -rA",
        log_parser: project.other?.parser ?? "parse_log_pytest",
      },
    };
    writeFileSync(path.join(scratch, "rows.jsonl"), `${JSON.stringify(record)}\n`);
    const out = path.join(scratch, "out");
    await importTasks(await openRows(path.join(scratch, "rows.jsonl")), out, {
      dataset: project.other === undefined ? "swe-rebench" : "swe-rebench-v2",
      split: "train",
      limits: DEFAULT_LIMITS,
      skipInvalid: false,
      replace: true,
      allowExitCode: false,
    });
    const directory = path.join(tasks, id);
    cpSync(path.join(out, id), directory, { recursive: true });
    const layout = layoutOver(image, tree, path.join(directory, "image"));
    const toml = path.join(directory, "task.toml");
    const text = readFileSync(toml, "utf8")
      .replace(/docker_image = .*/, `docker_image = "oci:${path.basename(layout)}"`)
      .replace(/workdir = .*/, 'workdir = "/testbed"')
      .replace(/memory_mb = .*/, `memory_mb = ${project.memoryMb ?? 256}`)
      .replace(/storage_mb = .*/, "storage_mb = 64");
    writeFileSync(toml, text);
    return { id, digest: taskDigest(directory) };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Writes a Harbor task that gives a reward, over the work tree of CALC. `script` is tests/test.sh. */
export function writeRewardTask(
  tasks: string,
  id: string,
  script: string,
  image: KeptImage,
  environment = "",
): WrittenTask {
  const directory = path.join(tasks, id);
  // Beside the tasks, for all of them: an image of its own for each would be unpacked for each.
  const layout = path.join(tasks, "../calc-image");
  if (!existsSync(layout)) {
    const tree = mkdtempSync(path.join(tasks, ".calc-"));
    put(tree, CALC.files);
    layoutOver(image, tree, layout);
    rmSync(tree, { recursive: true, force: true });
  }
  put(directory, {
    "task.toml": `schema_version = "1.4"\n[verifier]\ntimeout_sec = 20\n[environment]\ndocker_image = "oci:../../calc-image"\nmemory_mb = 256\nstorage_mb = 64\nnetwork_mode = "no-network"\n${environment}`,
    "instruction.md": "Repair the calculator.\n",
    "tests/test.sh": script,
  });
  return { id, digest: taskDigest(directory) };
}

function put(directory: string, files: Readonly<Record<string, string>>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), content);
  }
}
