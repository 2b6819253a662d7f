/**
 * Owns reading a TAP stream in a log, as SWE-bench's records name its tests: all that stands behind the
 * number, subtests included. (tap.ts of the bundled tasks reads top-level points only.)
 */
import { linewise } from "../line-parser.js";

const POINT = /^(ok|not ok) (\d+) (?:- )?(.+)$/;
const DIRECTIVE = /\s#\s*(SKIP|TODO)\b.*$/i;

export const tapLog = linewise({
  name: "tap",
  reads: "Test Anything Protocol",
  startsWith: "on",
  read: (line) => {
    if (!line.startsWith("ok ") && !line.startsWith("not ok ")) return undefined;
    const point = POINT.exec(line);
    if (point === null) return undefined;
    const directive = DIRECTIVE.exec(point[3]!);
    if (directive !== null) return [point[3]!.slice(0, directive.index), "skipped"];
    return [point[3]!, point[1] === "ok" ? "passed" : "failed"];
  },
});
