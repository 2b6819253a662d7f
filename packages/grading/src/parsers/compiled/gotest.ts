/**
 * Owns reading `go test -v`: `--- PASS: TestA (0.00s)`, sub-tests indented with their parent's name before
 * them (`TestA/case#01`). Parents are reported as well.
 */
import type { LoggedStatus } from "../../results/status.js";
import { linewise } from "../line-parser.js";

const RESULT = /^--- (PASS|FAIL|SKIP): (.+) \([^()]*\)$/;
const STATUSES: Readonly<Record<string, LoggedStatus>> = { PASS: "passed", FAIL: "failed", SKIP: "skipped" };

export const gotest = linewise({
  name: "gotest",
  reads: "`go test -v`",
  startsWith: "-",
  read: (line) => {
    if (!line.startsWith("--- ")) return undefined;
    const result = RESULT.exec(line);
    return result === null ? undefined : [result[2]!, STATUSES[result[1]!]!];
  },
});
