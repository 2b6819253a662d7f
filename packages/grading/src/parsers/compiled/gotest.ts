/**
 * Owns reading `go test -v`: `--- PASS: TestA (0.00s)`, sub-tests indented with their parent's name before
 * them (`TestA/case#01`). Parents are reported as well.
 */
import type { LoggedStatus } from "../../results/status.js";
import { linewise } from "../line-parser.js";

const STATUSES: Readonly<Record<string, LoggedStatus>> = {
  "--- PASS: ": "passed",
  "--- FAIL: ": "failed",
  "--- SKIP: ": "skipped",
};
const NAME_AT = "--- PASS: ".length;
const PARENTHESIS = /[()]/;

export const gotest = linewise({
  name: "gotest",
  reads: "`go test -v`",
  startsWith: "-",
  read: (line) => {
    const status = STATUSES[line.slice(0, NAME_AT)];
    const end = status === undefined ? -1 : line.lastIndexOf(" (");
    if (status === undefined || end <= NAME_AT || !line.endsWith(")")) return undefined;
    return PARENTHESIS.test(line.slice(end + 2, -1)) ? undefined : [line.slice(NAME_AT, end), status];
  },
});
