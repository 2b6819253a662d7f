/** Scripts of records taken apart, and put together again for bash: real bash runs them. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { prepareCommand, STATE_DIRECTORY, splitEvalScript, testsCommand } from "../../src/log/eval-script.js";
import { runnerOf } from "../../src/log/runner.js";
import { RUNNERS } from "../../src/log/runners/index.js";
import { pytest } from "../../src/log/runners/python.js";

const BUILT = `#!/bin/bash
set -uxo pipefail
export OWN='a b'
cd /tmp
: '>>>>> Start Test Output'
pytest -rA tests/a.py
code=$?
: '>>>>> End Test Output'
echo "Test Exit Code: $code"
exit "$code"
`;

describe("taking a script apart", () => {
  test("before the start mark is preparation, between the marks the tests, without the line that keeps the code", () => {
    const { prepare, tests } = splitEvalScript(BUILT);
    expect(tests).toBe("pytest -rA tests/a.py");
    expect(prepare?.split("\n").at(-1)).toBe("cd /tmp");
  });

  test("echoed marks are marks, quoted ones in a patch are not", () => {
    const text =
      "cat <<'E'\n+>>>>> Start Test Output\nE\necho '>>>>> Start Test Output'\nmake test\necho '>>>>> End Test Output'\n";
    expect(splitEvalScript(text).tests).toBe("make test");
  });

  test("a script without marks is the test command, whole", () => {
    expect(splitEvalScript("make test\n")).toEqual({ prepare: undefined, tests: "make test\n" });
  });
});

test.each([
  ["pytest -rA a.py", "pytest", "pytest"],
  ["python -m pytest a.py", "pytest-v2", "pytest"],
  ["/opt/x/bin/pytest a.py 2>&1 | tee log", "pytest", "pytest"],
  ["xvfb-run pytest a.py", "pytest", "pytest"],
  ["pytest a.py", "django", undefined],
  ["pytest a.py; pytest b.py", "pytest", undefined],
  ["pytest a.py\npytest b.py", "pytest", undefined],
  ["# pytest\nmake test", "pytest", undefined],
  ["tox --current-env -epy39 -v -- a.py", "pytest", undefined],
  ["./tests/runtests.py --verbosity 2 mypytest.module", "django", "unittest"],
  ["python -W ignore -m unittest -v tests.a", "django", undefined],
  ["python3 -m unittest -v tests.a", "django", "unittest"],
  ["PYTHONWARNINGS='ignore' bin/test -C --verbose sympy/core/tests/test_x.py", "sympy", undefined],
  ["npx jest --verbose src/a.test.js", "jest", "jest"],
  ["yarn vitest run --reporter verbose", "vitest", "vitest"],
  ["./node_modules/.bin/mocha --reporter spec test/a.js", "mocha", "mocha"],
  ["npm test -- --verbose", "jest", undefined],
  ["npx jest a && npx jest b", "jest", undefined],
  ["go test -v ./...", "gotest", undefined],
  ["PYTHONPATH=. pytest a.py", "pytest", undefined],
  ["PYTHONPATH=src:$PYTHONPATH pytest a.py", "pytest", "pytest"],
  ["NODE_OPTIONS=--experimental-vm-modules npx jest a", "jest", undefined],
])("%s, read as %s: the channel of %s", (command, parser, expected) => {
  expect(runnerOf(RUNNERS, command, parser)?.name).toBe(expected);
});

describe("put together, in bash", () => {
  const base = mkdtempSync(path.join(tmpdir(), "mortise-eval-"));
  afterAll(() => rmSync(base, { recursive: true, force: true }));
  const here = (command: string) => command.replaceAll(STATE_DIRECTORY, base);
  const bash = (command: string, input = "", env = {}) =>
    spawnSync("bash", ["--norc", "-c", here(command), "/tests/eval.sh"], {
      input,
      encoding: "utf8",
      env: { PATH: process.env.PATH, ...env },
    });

  test("variables, functions and the directory reach the tests, and nothing else", () => {
    const prepare = "export OWN='a\nb'\nlocal_only=1\nsay() { echo \"said $1\"; }\ncd /usr\nset -x";
    const prepared = bash(prepareCommand(prepare), "unread");
    expect([prepared.status, prepared.stderr]).toEqual([0, ""]);
    const tests = `pwd; say "$OWN"; echo "[\${local_only-}]"; exit 3`;
    const ran = bash(testsCommand({ prepare, tests }, undefined));
    expect(ran.status).toBe(3);
    expect(ran.stdout).toBe("/usr\nsaid a\nb\n[]\n");
  });

  test("a preparation that exits leaves no state and its own code", () => {
    const { status, stdout } = bash(prepareCommand("echo '>>>>> Patch Apply Failed'; exit 1"));
    expect([status, stdout]).toEqual([1, ">>>>> Patch Apply Failed\n"]);
  });

  test("variables that load code reach the tests only if the script sets them", () => {
    bash(prepareCommand("export PYTHONPATH=/mine"), "", { PYTEST_ADDOPTS: "--co", LD_PRELOAD: "" });
    const show = `echo "[$PYTHONPATH] [\${PYTEST_ADDOPTS-none}]"`;
    const own = bash(testsCommand({ prepare: "export PYTHONPATH=/mine", tests: show }, undefined));
    expect(own.stdout).toBe("[/mine] [none]\n");
    const channel = bash(
      testsCommand({ prepare: "export PYTHONPATH=/mine", tests: show }, pytest.exports),
      "x",
    );
    expect(channel.stdout).toBe("[/opt/mortise-python:/mine] [-p mortise_channel]\n");
  });

  test("both outputs are the log; the channel is apart, and the tests have no input", () => {
    const tests = "echo out; echo err >&2; read -r line || echo none; cat <&58; echo told >&57";
    const { stdout, stderr } = bash(testsCommand({ prepare: undefined, tests }, []), "the nonce\n");
    expect(stdout).toBe("out\nerr\nnone\nthe nonce\n");
    expect(stderr).toBe("told\n");
  });

  test("a pipeline fails with its first command where the script says so", () => {
    const tests = "false | cat";
    bash(prepareCommand("set -uxo pipefail"));
    expect(bash(testsCommand({ prepare: "set -uxo pipefail", tests }, undefined)).status).toBe(1);
    expect(bash(testsCommand({ prepare: ":", tests }, undefined)).status).toBe(0);
  });
});
