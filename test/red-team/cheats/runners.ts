/**
 * Owns the cheats against other test runners: unittest, Jest, Vitest, Mocha. Each does to its own runner what the others
 * do to theirs; the unrepaired code is `calc.py`, or `src/calc.js`.
 */
import {
  CJS,
  NODE_PROJECTS,
  type NodeProject,
  READS_ANSWERS,
  UNITTEST_BROKEN,
  UNITTEST_LOG,
} from "../../../services/verifier/test/runner-projects.js";
import { type Cheat, write } from "./cheat.js";

const NAMED = "named results and the runner's own end are required";
const CHANNEL = "results are told on a channel with a nonce, and have to agree with the log";
const CANARY = "a test that must fail is reported passed";
const ALTERED = "what passes has to fail where the tests assert something else, run again in another sandbox";
const CONFIGURATION = "files that configure tests stay as the pristine task has them";
const RUNNER = "files of the test runner stay as the pristine task has them";

interface Row {
  readonly name: string;
  readonly tries: string;
  readonly stoppedBy: string;
  readonly files: Readonly<Record<string, string>>;
  readonly ends?: Cheat["ends"];
}

const python = (code: string) => ({ "calc.py": code + UNITTEST_BROKEN });

const UNITTEST_ROWS: readonly Row[] = [
  {
    name: "os-exit",
    tries: "the process ends with exit code 0 when the module is imported",
    stoppedBy: NAMED,
    files: python("import os\nos._exit(0)\n"),
  },
  {
    name: "log-printed",
    tries: "a whole passing log is printed, then the process ends with exit code 0",
    stoppedBy: CHANNEL,
    files: python(`import os\nos.write(2, b"""${UNITTEST_LOG}""")\nos._exit(0)\n`),
    ends: "tamper",
  },
  {
    name: "channel-imitated",
    tries: "records are written on every descriptor with a nonce that was guessed",
    stoppedBy: "a record without the run's nonce can only be forged",
    files: python(
      'import os\nfor fd in range(3, 200):\n    try:\n        os.write(fd, b\'{"nonce": "0", "seq": 1, "nodeid": "x", "phase": "call", "outcome": "passed"}\\n\')\n    except OSError:\n        pass\n',
    ),
    ends: "tamper",
  },
  {
    name: "result-patched",
    tries: "the result class is patched so that failures are successes",
    stoppedBy: CANARY,
    files: python(
      "import unittest\nunittest.TextTestResult.addFailure = lambda self, test, err: self.addSuccess(test)\n",
    ),
    ends: "tamper",
  },
  {
    name: "assertions-patched",
    tries: "assertions are replaced by nothing",
    stoppedBy: CANARY,
    files: python("import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\n"),
    ends: "tamper",
  },
  {
    name: "runner-replaced",
    tries: "a package of the runner's name stands at the top of the work tree",
    stoppedBy: "such files are left out of the change",
    files: { "unittest/__init__.py": "raise SystemExit(0)", "unittest/__main__.py": "raise SystemExit(0)" },
  },
];

function nodeRows({ name, code, test, patched, config }: NodeProject): Row[] {
  const inProcess = name === "mocha";
  return [
    {
      name: "exit-at-load",
      tries: "the process ends with exit code 0 when the code is loaded",
      stoppedBy: NAMED,
      files: { [code]: `process.reallyExit(0);\n${CJS.bad}` },
    },
    {
      name: inProcess ? "runner-patched" : "assertions-patched",
      tries: inProcess
        ? "the runner is patched so that no test can fail"
        : "what assertions compare with is patched",
      stoppedBy: inProcess ? CANARY : ALTERED,
      files: { [code]: patched + CJS.bad },
      ends: "tamper",
    },
    {
      name: "answers-read",
      tries: "functions read what is expected in the files of the tests",
      stoppedBy: ALTERED,
      files: { [code]: READS_ANSWERS },
      ends: "tamper",
    },
    {
      name: "configured",
      tries: "the runner's configuration asks for other tests, or for none",
      stoppedBy: CONFIGURATION,
      files: config as Readonly<Record<string, string>>,
    },
    {
      name: "runner-replaced",
      tries: "packages with the names of the runner's lie in the work tree",
      stoppedBy: RUNNER,
      files: {
        [`node_modules/${name}/package.json`]: `{ "name": "${name}", "version": "9.9.9", "main": "index.js" }`,
        [`node_modules/${name}/index.js`]: "process.exit(0);",
      },
    },
    {
      name: "snapshot-edited",
      tries: "snapshots are written that fit the broken code",
      stoppedBy: CONFIGURATION,
      files: {
        [`${test.replace("calc.test.js", "__snapshots__/calc.test.js.snap")}`]: "exports[`adds 1`] = `-1`;",
      },
    },
  ];
}

function cheats(family: Cheat["family"], rows: readonly Row[]): Cheat[] {
  return rows.map(({ name, tries, stoppedBy, files, ends = "unresolved" }) => ({
    name: `${family}-${name}`,
    family,
    tries,
    stoppedBy,
    script: Object.entries(files)
      .map(([path, content]) => write(path, content.trimEnd()))
      .join(""),
    ends,
  }));
}

export const RUNNER_CHEATS: readonly Cheat[] = [
  ...cheats("unittest", UNITTEST_ROWS),
  ...NODE_PROJECTS.flatMap((project) => cheats(project.name, nodeRows(project))),
];
