/**
 * unittest, Django's runner and SymPy's graded for real, the latter two on source releases from PyPI: a repair is
 * resolved, with altered tests and, but for SymPy's, a channel; nothing is not; and changes that would rather look
 * repaired are caught.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Outcome } from "@mortise/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { archiveOf, type Release, unpackRelease } from "../../../../test/real-tasks/releases.js";
import type { Change } from "../patch-bytes.js";
import { pythonImage } from "../python-image.js";
import { type PythonProject, type WrittenTask, writePythonTask } from "../python-task.js";
import {
  UNITTEST,
  UNITTEST_BROKEN,
  UNITTEST_LOG,
  UNITTEST_REPAIR,
  unittestName,
} from "../runner-projects.js";
import { absentFor, VerificationWorld } from "../verification-world.js";

const DJANGO: Release = {
  name: "Django",
  version: "4.2.16",
  sha256: "6f1616c2786c408ce86ab7e10f792b8f15742f7b7b7460243929cb371e7f1dad",
};
const SYMPY: Release = {
  name: "sympy",
  version: "1.12.1",
  sha256: "2877b03f998cd8c08f07cd0de5b767119cd3ef40d09f41c30d722f6686b0fb88",
};
const { RESOLVED, UNRESOLVED, INVALID_TAMPER } = Outcome;
const PATIENCE_MS = 600_000;
const image = pythonImage();
const absent = absentFor(image);
if (absent !== undefined) console.log(`test runners of Python skipped: ${absent}`);

/** A release with its dependencies beside it, or why it cannot be had. */
function sourceOf(base: string, release: Release, packages: readonly string[]): string | { missing: string } {
  const tree = path.join(base, release.name);
  try {
    archiveOf(release);
    mkdirSync(tree, { recursive: true });
    unpackRelease(release, tree);
    const pip = ["-m", "pip", "install", "--quiet", "--no-input", "--no-deps", "--target", tree, ...packages];
    execFileSync("python3", pip, { stdio: "pipe", timeout: 180_000 });
    rmSync(path.join(tree, "bin"), { recursive: true, force: true });
    return tree;
  } catch (error) {
    return { missing: `${release.name} ${release.version}: ${String(error).slice(0, 200)}` };
  }
}

const CHEATS: readonly (readonly [string, string, readonly Outcome[], string])[] = [
  ["ends the process with 0", `import os\nos._exit(0)\n${UNITTEST_BROKEN}`, [UNRESOLVED], ""],
  [
    "prints a whole log and ends the process",
    `import os\nos.write(2, b"""${UNITTEST_LOG}""")\nos._exit(0)\n${UNITTEST_BROKEN}`,
    [INVALID_TAMPER],
    "log-disagrees",
  ],
  [
    "writes results with a guessed nonce on every descriptor",
    `import os\nfor fd in range(3, 200):\n    try:\n        os.write(fd, b'{"nonce": "0", "seq": 1, "nodeid": "x", "phase": "call", "outcome": "passed"}\\n')\n    except OSError:\n        pass\n${UNITTEST_BROKEN}`,
    [INVALID_TAMPER],
    "forged-result",
  ],
  [
    "makes failures successes",
    `import unittest\nunittest.TestResult.addFailure = lambda self, test, err: self.addSuccess(test)\nunittest.TextTestResult.addFailure = lambda self, test, err: self.addSuccess(test)\n${UNITTEST_BROKEN}`,
    [INVALID_TAMPER],
    "canary-flipped",
  ],
  [
    "takes the assertions out of the test case",
    `import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\n${UNITTEST_BROKEN}`,
    [INVALID_TAMPER],
    "canary-flipped",
  ],
  [
    "equals everything",
    "class Same(int):\n    __hash__ = int.__hash__\n\n    def __eq__(self, other):\n        return True\n\n\ndef add(a, b):\n    return Same()\n\n\ndef sub(a, b):\n    return Same()\n",
    [INVALID_TAMPER],
    "altered-test-passed",
  ],
  [
    "takes the channel out of memory",
    `import gc, os, sys
found = [o for o in gc.get_objects() if callable(o) and getattr(o, "__name__", "") == "send" and getattr(o, "__module__", "") == "mortise_pipe"]
if found:
    send = found[0]
    names = ${JSON.stringify([unittestName("test_add"), `${unittestName("test_sub")}\nSubtraction, as documented.`, unittestName("test_parts")])}
    send({"canary": "pass", "outcome": "passed"})
    for name in names:
        send({"nodeid": name, "phase": "call", "outcome": "passed"})
    send({"nodeid": "${unittestName("test_expected")}", "phase": "call", "outcome": "xfailed"})
    send({"canary": "fail", "outcome": "failed"})
    send({"finish": True, "exitstatus": 0, "collected": 4})
    os.write(2, b"""${UNITTEST_LOG}""")
    os._exit(0)
${UNITTEST_BROKEN}`,
    [INVALID_TAMPER],
    "altered-test-passed",
  ],
];

describe.skipIf(absent !== undefined)("test runners of Python", () => {
  const base = mkdtempSync(path.join(tmpdir(), "mortise-python-runners-"));
  const tasks = path.join(base, "tasks");
  let world: VerificationWorld;
  const django = absent === undefined ? sourceOf(base, DJANGO, ["asgiref==3.8.1", "sqlparse==0.5.1"]) : "";
  const sympy = absent === undefined ? sourceOf(base, SYMPY, ["mpmath==1.3.0"]) : "";
  for (const source of [django, sympy])
    if (typeof source !== "string") console.log(`skipped: ${source.missing}`);

  beforeAll(async () => {
    world = await VerificationWorld.start(base, tasks);
  }, 300_000);
  afterAll(async () => {
    await world?.stop();
    rmSync(base, { recursive: true, force: true });
  });

  const write = (id: string, project: PythonProject): Promise<WrittenTask> => {
    if ("missing" in image) throw new Error(image.missing);
    return writePythonTask(tasks, id, project, image);
  };
  const ended = async (task: WrittenTask, change: Change | undefined, outcomes: readonly Outcome[]) => {
    const verdict = await world.grade(task, change);
    expect(outcomes, `${verdict.reason}\n${await world.logOf(verdict)}`).toContain(verdict.outcome);
    return verdict;
  };

  describe("unittest", () => {
    let task: WrittenTask;
    beforeAll(async () => {
      task = await write("own__unittest-1", UNITTEST);
    }, PATIENCE_MS);

    test(
      "the repair is resolved: log, channel, canaries and altered tests agree",
      async () => {
        const verdict = await ended(task, { "calc.py": UNITTEST_REPAIR }, [RESOLVED]);
        expect(verdict.findings).toEqual([]);
      },
      PATIENCE_MS,
    );

    test(
      "nothing is unresolved",
      async () => {
        await ended(task, undefined, [UNRESOLVED]);
      },
      PATIENCE_MS,
    );

    test.each(CHEATS)(
      "code that %s",
      async (_, code, outcomes, subject) => {
        const verdict = await ended(task, { "calc.py": code }, outcomes);
        if (subject !== "") expect(verdict.findings.map((finding) => finding.subject)).toContain(subject);
      },
      PATIENCE_MS,
    );
  });

  describe.skipIf(typeof django !== "string")("Django's runner", () => {
    const file = "django/utils/text.py";
    let good = "";
    let bad = "";
    let task: WrittenTask;
    beforeAll(async () => {
      good = readFileSync(path.join(django as string, file), "utf8");
      bad = good.replace("return x[0].upper() + x[1:]", "return x[0].lower() + x[1:]");
      expect(bad).not.toBe(good);
      const test = "tests/utils_tests/test_capital.py";
      const dotted = (name: string) => `${name} (utils_tests.test_capital.CapitalTests.${name})`;
      task = await write("django__django-1", {
        tree: django as string,
        files: { [file]: bad },
        repaired: { [file]: good },
        tests: {
          [test]: `from django.test import SimpleTestCase, TestCase\nfrom django.utils.text import capfirst\n\n\nclass CapitalTests(TestCase):\n    def test_word(self):\n        self.assertEqual(capfirst("hello"), "Hello")\n\n    def test_nothing(self):\n        self.assertEqual(capfirst(""), "")\n`,
        },
        failToPass: [dotted("test_word")],
        passToPass: [dotted("test_nothing")],
        testCommand:
          "PYTHONPATH=/testbed:$PYTHONPATH python3 ./tests/runtests.py --settings=test_sqlite --parallel 1 --verbosity 2 utils_tests.test_capital",
        other: { parser: "django", language: "python" },
        memoryMb: 512,
      });
    }, 600_000);

    test(
      "the repair is resolved, nothing is not",
      async () => {
        const verdict = await ended(task, { [file]: good }, [RESOLVED]);
        expect(verdict.findings).toEqual([]);
        await ended(task, undefined, [UNRESOLVED]);
      },
      PATIENCE_MS,
    );

    test(
      "a runner of one's own is left out, beside a repair or without one",
      async () => {
        const change = {
          "tests/runtests.py": "raise SystemExit(0)\n",
          "django/test/runner.py": "raise SystemExit(0)\n",
        };
        const broken = await ended(task, change, [UNRESOLVED]);
        expect(broken.stripped.map(({ subject }) => subject)).toEqual(Object.keys(change).sort());
        await ended(task, { ...change, [file]: good }, [RESOLVED]);
      },
      PATIENCE_MS,
    );

    test(
      "code that calls every test passed, from where Django is imported",
      async () => {
        const patch = `import unittest\nunittest.TextTestResult.addFailure = lambda self, test, err: self.addSuccess(test)\n`;
        const verdict = await ended(task, { [file]: `${bad}\n${patch}` }, [INVALID_TAMPER]);
        expect(verdict).toMatchObject({ conclusive: true });
      },
      PATIENCE_MS,
    );

    test(
      "a text that equals every other",
      async () => {
        const same = `\n\nclass Same(str):\n    __hash__ = str.__hash__\n\n    def __eq__(self, other):\n        return True\n\n\ndef capfirst(x):\n    return Same()\n`;
        await ended(task, { [file]: bad + same }, [INVALID_TAMPER]);
      },
      PATIENCE_MS,
    );
  });

  describe.skipIf(typeof sympy !== "string")("SymPy's runner", () => {
    const file = "sympy/core/own.py";
    const bad = "from sympy.core.numbers import Integer\n\n\ndef twice(n):\n    return Integer(n)\n";
    const good = bad.replace("Integer(n)", "Integer(2)*n");
    let task: WrittenTask;
    beforeAll(async () => {
      task = await write("sympy__sympy-1", {
        tree: sympy as string,
        files: {
          [file]: bad,
          // The release has no bin/test: this calls what SymPy's own calls.
          "bin/test":
            "import sys\n\nsys.path.insert(0, '.')\nimport sympy\n\nsys.exit(not sympy.test(*[a for a in sys.argv[1:] if not a.startswith('-')], verbose=True, force_colors=False, colors=False))\n",
        },
        repaired: { [file]: good },
        tests: {
          "sympy/core/tests/test_own.py":
            "from sympy.core.own import twice\n\n\ndef test_twice():\n    assert twice(21) == 42\n\n\ndef test_zero():\n    assert twice(0) == 0\n",
        },
        failToPass: ["test_twice"],
        passToPass: ["test_zero"],
        testCommand: "python3 bin/test -C --verbose sympy/core/tests/test_own.py",
        other: { parser: "sympy", language: "python" },
        memoryMb: 512,
      });
    }, 600_000);

    test(
      "the repair is resolved, nothing is not",
      async () => {
        const verdict = await ended(task, { [file]: good }, [RESOLVED]);
        expect(verdict.findings).toEqual([]);
        await ended(task, undefined, [UNRESOLVED]);
      },
      PATIENCE_MS,
    );

    test(
      "a reporter that passes everything: left out of the runner, caught from elsewhere",
      async () => {
        const planted = { "sympy/testing/runtests.py": "def test(*a, **k):\n    return True\n" };
        expect((await ended(task, planted, [UNRESOLVED])).stripped).toHaveLength(1);
        const patch =
          "from sympy.testing import runtests\nruntests.PyTestReporter.test_fail = lambda self, info: self.test_pass()\n";
        await ended(task, { [file]: patch + bad }, [INVALID_TAMPER]);
      },
      PATIENCE_MS,
    );
  });
});
