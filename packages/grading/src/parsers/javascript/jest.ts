/** Owns reading lines of Jest and Vitest in their verbose form: a mark, a name, perhaps a duration. */
import type { LoggedStatus } from "../../results/status.js";
import { linewise } from "../line-parser.js";

const JEST_MARKS: Readonly<Record<string, LoggedStatus>> = { "✓": "passed", "✕": "failed", "○": "skipped" };
const VITEST_MARKS: Readonly<Record<string, LoggedStatus>> = { "✓": "passed", "×": "failed", "↓": "skipped" };
const JEST_DURATION = /\s\(\d+\s*m?s\)$/;
/** Vitest prints a bare duration; records lost any number at the end with it. */
const VITEST_DURATION = /\s(?:\d+\s*m?s?|\[skipped\])$/;
const JSON_RESULT = /^\[(PASSED|FAILED)\]\s(.+)$/;

export const jest = linewise({
  name: "jest",
  reads: "Jest `--verbose`",
  startsWith: "✓✕○",
  read: (line) => {
    const status = JEST_MARKS[line[0] ?? ""];
    const text = line.slice(2);
    const name = (text.endsWith("s)") ? text.replace(JEST_DURATION, "") : text).trim();
    return status === undefined || line[1] !== " " || name === "" ? undefined : [name, status];
  },
});

/** Jest's JSON made lines, `[PASSED] suite test`: names of different suites stay apart. */
export const jestJson = linewise({
  name: "jest-json",
  reads: "Jest's JSON, one `[STATUS] name` a line",
  startsWith: "[",
  read: (line) => {
    const result = line.startsWith("[") ? JSON_RESULT.exec(line) : null;
    return result === null ? undefined : [result[2]!, result[1] === "PASSED" ? "passed" : "failed"];
  },
});

export const vitest = linewise({
  name: "vitest",
  reads: "Vitest `--reporter=verbose`",
  startsWith: "✓×↓",
  read: (line) => {
    const status = VITEST_MARKS[line[0] ?? ""];
    const name = line.slice(2).replace(VITEST_DURATION, "");
    return status === undefined || line[1] !== " " || name === "" ? undefined : [name, status];
  },
});
