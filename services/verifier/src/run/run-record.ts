/**
 * Owns what is kept of one verification: everything its verdict was made from, and nothing that was concluded. The
 * same record and the same graders give the same verdict, without running anything.
 */

import type { Finding, RunOnceResponse, RunStepResult } from "@mortise/contracts";
import type { AlteredName } from "../counter/alter.js";

/** How the tests of a task tell their results. */
export type TestKind = "results" | "log" | "reward";

export interface CollectedFile {
  readonly path: string;
  readonly content: Uint8Array;
  /** Why it was not read; empty when it was. */
  readonly refused: string;
}

/** One command, as the host saw it end. */
export interface RanStep {
  readonly name: string;
  readonly exitCode: number;
  readonly signal: string;
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  readonly outputTruncated: boolean;
  /** Milliseconds. */
  readonly wallMs: number;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  readonly files: readonly CollectedFile[];
}

export interface RunRecord {
  readonly task: { readonly id: string; readonly digest: string };
  readonly kind: TestKind;
  /** Of the run, which is over: it proves nothing any more. */
  readonly nonce: string;
  /** Whether the test runner was given the channel, so that its silence means something. */
  readonly hasChannel: boolean;
  /** Which one; absent where there is none, and in evidence of when there was only pytest's. */
  readonly runner?: string | undefined;
  /** Whether a change of somebody's was graded; without one, whatever fails is the task's. */
  readonly hasChange: boolean;
  readonly steps: readonly RanStep[];
  /** The same tests, altered so that they have to fail, in another sandbox; absent where they were not run. */
  readonly counter?: CounterRun | undefined;
  readonly stripped: readonly { readonly path: string; readonly reason: string }[];
  /** Diffs applied by the host; `failure` is empty where it was. */
  readonly diffs: readonly { readonly name: string; readonly rung: string; readonly failure: string }[];
}

export interface CounterRun {
  readonly nonce: string;
  readonly tests: readonly AlteredName[];
  readonly steps: readonly RanStep[];
  /** Why the sandbox of it failed; empty when it did not. */
  readonly failure: string;
}

/** What `plan` knows before anything ran. */
export type RunFacts = Omit<RunRecord, "steps" | "stripped" | "diffs" | "counter">;

export function recordOf(
  { facts, stripped = [] }: { readonly facts: RunFacts; readonly stripped?: RunRecord["stripped"] },
  answer: RunOnceResponse,
): RunRecord {
  return {
    ...facts,
    steps: answer.steps.map(stepOf),
    stripped: [...stripped, ...answer.stripped.map(({ path, reason }) => ({ path, reason }))],
    diffs: answer.textPatches.map(({ name, rung, failure }) => ({ name, rung, failure })),
  };
}

export function counterOf(
  { nonce, tests }: Pick<CounterRun, "nonce" | "tests">,
  { steps, failureCode, failureReason }: RunOnceResponse,
): CounterRun {
  const failure = failureCode === "" ? "" : `${failureCode}: ${failureReason}`;
  return { nonce, tests, steps: steps.map(stepOf), failure };
}

function stepOf(step: RunStepResult): RanStep {
  const { name, exitCode, signal, timedOut, outOfMemory, outputTruncated, wallMs, stdout, stderr } = step;
  const files = step.files.map(({ path, content, refused }) => ({ path, content, refused }));
  return { name, exitCode, signal, timedOut, outOfMemory, outputTruncated, wallMs, stdout, stderr, files };
}

export function stepNamed(run: Pick<RunRecord, "steps">, name: string): RanStep | undefined {
  return run.steps.find((step) => step.name === name);
}

/** Something seen that an honest run does not show. */
export type Noticed = Pick<Finding, "subject" | "detail">;
