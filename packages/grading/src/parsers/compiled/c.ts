/**
 * Owns reading the runners of C and C++ projects that print a line a test: GoogleTest, CTest, Automake (jq),
 * and the runners of Redis and MicroPython.
 */
import type { LoggedStatus } from "../../results/status.js";
import { linewise } from "../line-parser.js";

const DURATION = /\s\(\d+\s*m?s\)$/;
const REDIS = /^\[(ok|err|skip|ignore)\]:\s(.+)$/;
const GOOGLE = /\[\s*(OK|FAILED)\s*\]\s/g;
const CTEST = /^\d+\/\d+ Test +#\d+: (\S+) \.*\s*(?:\*+)?(Passed|Failed|Not Run|Timeout|Exception|Skipped)\b/;
const MICROPYTHON = /^(pass|FAIL|skip)\s+(.+)$/;
const REDIS_STATUSES: Readonly<Record<string, LoggedStatus>> = {
  ok: "passed",
  err: "failed",
  skip: "skipped",
  ignore: "skipped",
};
const MICROPYTHON_STATUSES: Readonly<Record<string, LoggedStatus>> = {
  pass: "passed",
  FAIL: "failed",
  skip: "skipped",
};

/** `[err]: name in tests/unit/x.tcl`: the place belongs to failures only. */
export const redis = linewise({
  name: "redis",
  reads: "the Tcl suites of Redis and Valkey",
  startsWith: "[",
  read: (line) => {
    const result = line.startsWith("[") ? REDIS.exec(line) : null;
    if (result === null) return undefined;
    const name = result[2]!.replace(DURATION, "");
    return [result[1] === "err" ? withoutPlace(name) : name, REDIS_STATUSES[result[1]!]!];
  },
});

export const jq = linewise({
  name: "jq",
  reads: "Automake's `PASS: name`",
  startsWith: "PF",
  read: (line) => {
    if (line.startsWith("PASS: ")) return [line.slice("PASS: ".length), "passed"];
    return line.startsWith("FAIL: ") ? [line.slice("FAIL: ".length), "failed"] : undefined;
  },
});

export const micropython = linewise({
  name: "micropython",
  reads: "MicroPython's run-tests",
  startsWith: "pFs",
  read: (line) => {
    const result = MICROPYTHON.exec(line);
    return result === null ? undefined : [result[2]!, MICROPYTHON_STATUSES[result[1]!]!];
  },
});

/** `[       OK ] Suite.name (3 ms)`, also behind other output on the line. */
export const googletest = linewise({
  name: "googletest",
  reads: "GoogleTest",
  read: (line) => {
    if (!line.endsWith(")")) return undefined;
    const marks = [...line.matchAll(GOOGLE)];
    const mark = marks.at(-1);
    if (mark === undefined) return undefined;
    const rest = line.slice(mark.index + mark[0].length);
    const duration = rest.lastIndexOf(" (");
    return duration < 0 ? undefined : [rest.slice(0, duration), mark[1] === "OK" ? "passed" : "failed"];
  },
});

export const ctest = linewise({
  name: "ctest",
  reads: "CTest",
  startsWith: "0123456789",
  read: (line) => {
    const result = CTEST.exec(line);
    if (result === null) return undefined;
    if (result[2] === "Passed") return [result[1]!, "passed"];
    return [result[1]!, result[2] === "Skipped" || result[2] === "Not Run" ? "skipped" : "failed"];
  },
});

function withoutPlace(name: string): string {
  const at = name.lastIndexOf(" in ");
  return at < 0 || /\s/.test(name.slice(at + 4)) ? name : name.slice(0, at).trimEnd();
}
