/**
 * Owns reading what a test runner reported on its channel (runners/). Does not judge it.
 *
 * C1  Every record carries the nonce of the run and the next number. A record without the nonce was made by somebody
 *     else; a gap means that records are missing.
 */
import { z } from "zod";

const Start = z.object({ start: z.literal(true) });
const Finish = z.object({ finish: z.literal(true), exitstatus: z.int(), collected: z.int().nullable() });
const Canary = z.object({ canary: z.enum(["pass", "fail"]), outcome: z.string() });
const Result = z.object({
  nodeid: z.string(),
  phase: z.string(),
  outcome: z.string(),
  raised: z.boolean().optional(),
  file: z.string().optional(),
  titles: z.array(z.string()).optional(),
});
const Numbered = z.looseObject({ nonce: z.string(), seq: z.int() });
const ResultLike = z.union([Start, Finish, Canary, Result]);

export interface ChannelResult {
  readonly nodeid: string;
  readonly outcome: string;
  /** Of runners whose tests have titles: the file, and the titles of suites and test. */
  readonly file: string;
  readonly titles: readonly string[];
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
  /** What was written by something else than what reports for the runner. */
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
      // A shell may complain before the session starts; results without the nonce never come from it.
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
      const { nodeid, outcome, file = "", titles = [] } = told;
      results.push({ nodeid, outcome, file, titles });
      if (told.raised === true) mended.push(told.nodeid);
    }
  }
  return { hasStarted, finish, results, canaries, mended, foreign, hasGap };
}

function asJson(line: string): unknown {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
