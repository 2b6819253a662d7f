/**
 * Owns reading what the plugin of pytest reported on its channel (pytest/mortise_channel.py). Does not judge it.
 *
 * C1  Every record carries the nonce of the run and the next number. A record without the nonce was made by somebody
 *     else; a gap means that records are missing.
 */
import type { LoggedStatus } from "@mortise/grading";
import { z } from "zod";

const Start = z.object({ start: z.literal(true), pytest: z.string() });
const Finish = z.object({ finish: z.literal(true), exitstatus: z.int(), collected: z.int().nullable() });
const Canary = z.object({ canary: z.enum(["pass", "fail"]), outcome: z.string() });
const Result = z.object({
  nodeid: z.string(),
  phase: z.string(),
  outcome: z.string(),
  raised: z.boolean().optional(),
});
const Numbered = z.looseObject({ nonce: z.string(), seq: z.int() });
const ResultLike = z.union([Start, Finish, Canary, Result]);

const STATUSES: ReadonlyMap<string, LoggedStatus> = new Map([
  ["passed", "passed"],
  ["failed", "failed"],
  ["error", "error"],
  ["skipped", "skipped"],
  ["xfailed", "xfailed"],
]);

export interface ChannelResult {
  readonly nodeid: string;
  readonly outcome: string;
}

export interface ChannelReport {
  readonly hasStarted: boolean;
  /** Of the one session; undefined when it did not report its end. */
  readonly finish: { readonly exitStatus: number; readonly collected: number | undefined } | undefined;
  /** In the order they were reported; a test has several where it ran again or errs after it passed. */
  readonly results: readonly ChannelResult[];
  readonly canaries: { readonly pass: string | undefined; readonly fail: string | undefined };
  /** Tests whose call raised and that were reported passed. */
  readonly mended: readonly string[];
  /** What was written by something else than the plugin. */
  readonly foreign: readonly string[];
  readonly hasGap: boolean;
}

/**
 * Reads the channel. Never throws: what is no record is foreign, unless the output was cut, when it may be half of one.
 */
export function readChannel(bytes: Uint8Array, nonce: string, isCut: boolean): ChannelReport {
  const results: ChannelResult[] = [];
  const mended: string[] = [];
  const foreign: string[] = [];
  const canaries: { pass: string | undefined; fail: string | undefined } = {
    pass: undefined,
    fail: undefined,
  };
  let finish: ChannelReport["finish"];
  let hasStarted = false;
  let hasGap = false;
  let next = 0;
  for (const line of new TextDecoder().decode(bytes).split("\n")) {
    const value = asJson(line);
    const numbered = Numbered.safeParse(value);
    const record = ResultLike.safeParse(value);
    if (!numbered.success || numbered.data.nonce !== nonce || !record.success) {
      // A shell may complain before the session starts; results without the nonce never come from the plugin.
      if (line !== "" && ((hasStarted && !isCut) || record.success)) foreign.push(line.slice(0, 200));
      continue;
    }
    if (numbered.data.seq !== next) hasGap = true;
    next = numbered.data.seq + 1;
    const told = record.data;
    if ("start" in told) hasStarted = true;
    else if ("finish" in told)
      finish = { exitStatus: told.exitstatus, collected: told.collected ?? undefined };
    else if ("canary" in told) canaries[told.canary] = told.outcome;
    else {
      results.push({ nodeid: told.nodeid, outcome: told.outcome });
      if (told.raised === true) mended.push(told.nodeid);
    }
  }
  return { hasStarted, finish, results, canaries, mended, foreign, hasGap };
}

/** The log of a session that printed exactly these results, for the parser of the record to read. */
export function asSessionLog({ results, finish }: ChannelReport): string {
  const words: Record<LoggedStatus, string> = {
    passed: "PASSED",
    failed: "FAILED",
    error: "ERROR",
    skipped: "SKIPPED",
    xfailed: "XFAIL",
  };
  const isAgain = results.some(({ outcome }) => outcome === "rerun");
  const passes = results.filter(({ outcome }) => outcome === "passed").length;
  return [
    ">>>>> Start Test Output",
    "===== test session starts =====",
    ...(isAgain ? ["plugins: rerunfailures"] : []),
    "===== short test summary info =====",
    ...results.flatMap(({ nodeid, outcome }) => {
      const status = STATUSES.get(outcome);
      return status === undefined ? [] : [`${words[status]} ${nodeid}`];
    }),
    ...(finish === undefined ? [] : [`===== ${passes} passed in 0.00s =====`]),
    ">>>>> End Test Output",
    "",
  ].join("\n");
}

function asJson(line: string): unknown {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
