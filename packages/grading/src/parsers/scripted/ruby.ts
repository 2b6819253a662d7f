/** Owns reading Ruby's runners: Minitest, test-unit, Cucumber's progress, RSpec's JSON made lines. */
import type { LoggedStatus } from "../../results/status.js";
import { type LineResult, linewise } from "../line-parser.js";

const MARKS: Readonly<Record<string, LoggedStatus>> = {
  ".": "passed",
  F: "failed",
  E: "error",
  O: "skipped",
};
const CUCUMBER = /^(.*) \.+([.F])/;
const UNIT_MARK = /^\s+(?:(\.)|([EFO])\b)/;
const RSPEC_JSON = [" - passed", " - failed", " - pending"] as const;

/** `TestA#test_b = 0.01 s = .`, the dot before the time belonging to the name's end: `TestA#test_b. = 0.00 s = F`. */
export const minitest = linewise({
  name: "minitest",
  reads: "Minitest, verbose",
  read: (line) => {
    const mark = Math.max(line.lastIndexOf("."), line.lastIndexOf("F"), line.lastIndexOf("E"));
    const equals = mark <= 0 ? -1 : line.lastIndexOf("=", mark - 1);
    const dot = equals < 2 ? -1 : line.lastIndexOf(". ", equals - 2);
    return dot <= 0 ? undefined : [line.slice(0, dot), MARKS[line[mark]!]!];
  },
});

export const cucumber = linewise({
  name: "cucumber",
  reads: "Cucumber, progress",
  read: (line) => {
    const result = CUCUMBER.exec(line);
    return result === null ? undefined : [result[1]!, MARKS[result[2]!]!];
  },
});

/** `test: adds: .: (0.001)`: the last colon with a mark behind it ends the name. */
export const rubyUnit = linewise({
  name: "ruby-unit",
  reads: "test-unit, verbose",
  read: (line) => {
    for (let at = line.lastIndexOf(":"); at > 0; at = line.lastIndexOf(":", at - 1)) {
      const mark = UNIT_MARK.exec(line.slice(at + 1, at + 64));
      if (mark === null) continue;
      const name = line.slice(0, at);
      return [name.startsWith("test: ") ? name.slice("test: ".length) : name, MARKS[mark[1] ?? mark[2]!]!];
    }
    return undefined;
  },
});

export const rspecJson = linewise({
  name: "rspec-json",
  reads: "RSpec's JSON, one `name - status` a line",
  read: (line) => {
    let result: LineResult;
    let last = -1;
    for (const ending of RSPEC_JSON) {
      const at = line.lastIndexOf(ending);
      if (at <= 0 || at < last) continue;
      last = at;
      result = [
        line.slice(0, at),
        ending === " - passed" ? "passed" : ending === " - failed" ? "failed" : "skipped",
      ];
    }
    return result;
  },
});
