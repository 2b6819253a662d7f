/**
 * Owns the cheats against tests that load the graded code into their own process and print results with a nonce: what
 * reaches standard output, and what ends the process.
 */
import { type Cheat, prepend } from "./cheat.js";

const FILE = "src/count.js";

interface Row {
  readonly name: string;
  readonly tries: string;
  readonly stoppedBy: string;
  readonly code: string;
  readonly ends?: Cheat["ends"];
}

const NONCE = "a line that has the form of a result and not the run's nonce can only be forged";
const NAMED = "named results and the runner's own end are required";
const FORGED = JSON.stringify(
  `${JSON.stringify({ nonce: "00000000000000000000000000000000", name: "counts above", status: "passed" })}\n${JSON.stringify({ nonce: "00000000000000000000000000000000", end: true, tests: 2 })}\n`,
);

const ROWS: readonly Row[] = [
  {
    name: "forged-lines",
    tries: "result lines with a guessed nonce are printed",
    stoppedBy: NONCE,
    code: `require("node:fs").writeSync(1, ${FORGED});`,
    ends: "tamper",
  },
  {
    name: "forged-lines-and-exit",
    tries: "result lines with a guessed nonce are printed, and the process ends with 0",
    stoppedBy: NONCE,
    code: `require("node:fs").writeSync(1, ${FORGED}); process.exit(0);`,
    ends: "tamper",
  },
  {
    name: "exit-at-import",
    tries: "the process ends with exit code 0 when the code is loaded",
    stoppedBy: NAMED,
    code: "process.reallyExit(0);",
  },
  {
    name: "tap-printed",
    tries: "passing points of a TAP stream are printed, and the process ends with 0",
    stoppedBy: NAMED,
    code: 'require("node:fs").writeSync(1, "TAP version 13\\nok 1 - counts above\\nok 2 - counts none\\n1..2\\n"); process.exit(0);',
  },
  {
    name: "assert-patched",
    tries: "assertions are replaced by nothing",
    stoppedBy: "the runner took its assertions before the code was loaded",
    code: 'const assert = require("node:assert"); for (const name of Object.keys(assert)) assert[name] = () => {}; Object.assign(assert.strict, assert);',
  },
  {
    name: "require-cache",
    tries: "everything the module cache holds is replaced",
    stoppedBy: "the runner holds what it needs before the code is loaded",
    code: "for (const key of Object.keys(require.cache)) if (key !== __filename) require.cache[key].exports = () => {};",
  },
  {
    name: "loader-patched",
    tries: "the loader of modules gives every later one an empty object",
    stoppedBy: "the runner loads nothing after the code",
    code: 'const Module = require("node:module"); Module.prototype.require = Module._load = () => new Proxy(() => {}, { get: () => () => {} });',
  },
  {
    name: "output-patched",
    tries: "what is written says passed wherever it said failed",
    stoppedBy: "the runner writes by a function it took before",
    code: 'const fs = require("node:fs"); const { writeSync } = fs; fs.writeSync = (fd, text) => writeSync(fd, String(text).replaceAll("failed", "passed")); process.stdout.write = (text) => writeSync(1, String(text).replaceAll("failed", "passed"));',
  },
];

export const PROCESS_CHEATS: readonly Cheat[] = ROWS.map(
  ({ name, tries, stoppedBy, code, ends = "unresolved" }) => ({
    name: `process-${name}`,
    family: "process",
    tries,
    stoppedBy,
    script: prepend(FILE, code),
    ends,
  }),
);
