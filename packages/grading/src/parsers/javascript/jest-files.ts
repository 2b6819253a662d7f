/** Owns reading Jest without `--verbose`, where a test is a file: `PASS src/a.test.js (5.1 s)`. */
import type { LoggedStatus } from "../../results/status.js";
import { linewise } from "../line-parser.js";

const TIMED = /^(.*)\s\([\d.]+(?:ms|\s?s)\)/;
const TIME_AT_END = /\s\([\d.]+\s?m?s\)$/;

/** What follows the time belongs to no name. */
export const carbon = linewise({
  name: "carbon",
  reads: "Jest, a result for each file",
  startsWith: "PF",
  read: (_, raw) => {
    const status = fileStatus(raw);
    if (status === undefined) return undefined;
    const name = raw.slice("PASS ".length);
    return [TIMED.exec(name)?.[1] ?? name, status];
  },
});

/** Records of one project kept the time in the name. */
export const grommet = linewise({
  name: "grommet",
  reads: "Jest, a result for each file, time at the end",
  startsWith: "PF",
  read: (line, raw) => {
    const status = fileStatus(raw);
    const name = line.slice("PASS ".length).trim();
    return status === undefined ? undefined : [[name.replace(TIME_AT_END, ""), name], status];
  },
});

function fileStatus(line: string): LoggedStatus | undefined {
  if (line.startsWith("PASS ")) return "passed";
  return line.startsWith("FAIL ") ? "failed" : undefined;
}
