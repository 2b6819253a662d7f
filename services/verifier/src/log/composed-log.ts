/** Owns the log of a run as it is archived and read: what the host saw, with marks and exit code of its own. */
import { type RanStep, type RunRecord, stepNamed } from "../run/run-record.js";
import { PREPARE, TESTS } from "./plan-log.js";

/** The log as it is archived: both parts, with marks and exit code of the host's. */
export function composedLog(run: Pick<RunRecord, "steps">): string {
  const text = (step: RanStep | undefined) => new TextDecoder().decode(step?.stdout);
  const tests = stepNamed(run, TESTS);
  const before = text(stepNamed(run, PREPARE));
  if (tests === undefined) return before;
  const own = text(tests);
  const code = tests.signal === "" && !tests.timedOut && !tests.outOfMemory ? [tests.exitCode] : [];
  return [
    ...(before === "" ? [] : [before.replace(/\n$/, "")]),
    ">>>>> Start Test Output",
    own.replace(/\n$/, ""),
    ">>>>> End Test Output",
    ...code.map((value) => `Test Exit Code: ${value}`),
    "",
  ].join("\n");
}
