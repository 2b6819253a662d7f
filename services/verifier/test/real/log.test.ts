/** Imported tasks graded for real: runc, a real pytest, a real verifier. Honest changes, and those that configure, forge or flee. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Outcome, TestStatus } from "@mortise/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Change } from "../patch-bytes.js";
import { pythonImage } from "../python-image.js";
import { CALC, type WrittenTask, writePythonTask } from "../python-task.js";
import { absentFor, VerificationWorld } from "../verification-world.js";

const image = pythonImage();
const absent = absentFor(image);
if (absent !== undefined) console.log(`verifications of real logs skipped: ${absent}`);

const REPAIR = CALC.repaired["calc/__init__.py"]!;

const NAMES = [...CALC.failToPass, ...CALC.passToPass];

describe.skipIf(absent !== undefined)("a log of pytest", () => {
  const base = mkdtempSync(path.join(tmpdir(), "mortise-log-"));
  const tasks = path.join(base, "tasks");
  let world: VerificationWorld;
  let calc: WrittenTask;

  beforeAll(async () => {
    if ("missing" in image) return;
    calc = await writePythonTask(tasks, "own__calc-1", CALC, image);
    world = await VerificationWorld.start(base, tasks);
  }, 300_000);
  afterAll(async () => {
    await world?.stop();
    rmSync(base, { recursive: true, force: true });
  });

  const grade = (change?: Change) => world.grade(calc, change);

  test("the repair is resolved: log, channel and canaries agree", async () => {
    const verdict = await grade({ "calc/__init__.py": REPAIR });
    expect([verdict.reason, verdict.outcome, verdict.reward]).toEqual([
      "every expected test passed",
      Outcome.RESOLVED,
      1,
    ]);
    expect(verdict.findings).toEqual([]);
    expect(verdict.grader).toBe("pytest/1 log-rules/2");
    expect(verdict.tests.map(({ name }) => name)).toEqual(NAMES);
    const log = await world.logOf(verdict);
    expect(log).toMatch(
      />>>>> Start Test Output\n(.*\n)*=+ 5 passed in .*\n>>>>> End Test Output\nTest Exit Code: 0\n$/,
    );
  }, 600_000);

  test("nothing, and a wrong repair, are unresolved with the tests that fail", async () => {
    const nothing = await grade();
    expect(nothing).toMatchObject({ outcome: Outcome.UNRESOLVED, reward: 0 });
    expect(
      nothing.tests.filter(({ status }) => status === TestStatus.PASSED).map(({ name }) => name),
    ).toEqual(CALC.passToPass);
    const wrong = await grade({ "calc/__init__.py": REPAIR.replace("return a - b", "return 0") });
    expect(wrong.outcome).toBe(Outcome.UNRESOLVED);
    expect(wrong.reason).toContain("PASS_TO_PASS");
  }, 600_000);

  test("every kind of result of an honest suite, under configuration of its own", async () => {
    if ("missing" in image) return;
    const kinds = `import unittest
import pytest
from calc import add

@pytest.mark.xfail
def test_expected():
    assert 0

@pytest.mark.xfail
def test_unexpected():
    pass

@pytest.mark.skip
def test_skipped():
    pass

@pytest.mark.parametrize("text", ["x y", "b - c", "a/b"])
def test_text(text):
    assert text

@pytest.fixture
def late():
    yield
    raise ValueError

def test_torn(late):
    pass

def test_raises():
    with pytest.raises(ValueError):
        raise ValueError

class TestUnit(unittest.TestCase):
    def test_unit(self):
        for n in range(2):
            with self.subTest(n=n):
                self.assertEqual(add(n, 0), n)

    @unittest.expectedFailure
    def test_failure(self):
        self.assertEqual(1, 2)

def test_add():
    assert add(1, 2) == 3
`;
    const at = (name: string) => `tests/test_kinds.py::${name}`;
    const task = await writePythonTask(
      tasks,
      "own__kinds-1",
      {
        ...CALC,
        files: {
          ...CALC.files,
          "setup.cfg": "[tool:pytest]\naddopts = -x --maxfail=50 -p no:randomly -W ignore\n",
          "conftest.py":
            "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef around(request):\n    assert request.node.name\n    yield\n\n\ndef pytest_collection_modifyitems(items):\n    items.reverse()\n",
        },
        tests: { "tests/test_kinds.py": kinds },
        failToPass: [at("test_add")],
        passToPass: [
          at("test_expected"),
          ...["x y", "b - c", "a/b"].map((text) => at(`test_text[${text}]`)),
          at("test_raises"),
          at("TestUnit::test_unit"),
          at("TestUnit::test_failure"),
        ],
      },
      image,
    );
    const repaired = await world.grade(task, { "calc/__init__.py": REPAIR });
    expect([repaired.reason, repaired.outcome]).toEqual(["every expected test passed", Outcome.RESOLVED]);
    // The suite has an error of its own, so pytest ends with 1 on both sides; no finding says otherwise.
    expect(repaired.findings).toEqual([]);
    expect((await world.grade(task)).outcome).toBe(Outcome.UNRESOLVED);
  }, 600_000);
});
