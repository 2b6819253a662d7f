/**
 * Owns what is kept of one verification: everything its verdict was made from, and nothing that was concluded. The
 * same record and the same graders give the same verdict, without running anything.
 */
import type { Finding, RunOnceResponse, RunStepResult } from "@mortise/contracts";

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
  /** Whether a runner of pytest was given the channel, so that its silence means something. */
  readonly hasChannel: boolean;
  /** Whether a change of somebody's was graded; without one, whatever fails is the task's. */
  readonly hasChange: boolean;
  readonly steps: readonly RanStep[];
  readonly stripped: readonly { readonly path: string; readonly reason: string }[];
  /** Diffs applied by the host; `failure` is empty where it was. */
  readonly diffs: readonly { readonly name: string; readonly rung: string; readonly failure: string }[];
}

/** What `plan` knows before anything ran. */
export type RunFacts = Omit<RunRecord, "steps" | "stripped" | "diffs">;

export function recordOf(facts: RunFacts, answer: RunOnceResponse): RunRecord {
  return {
    ...facts,
    steps: answer.steps.map(stepOf),
    stripped: answer.stripped.map(({ path, reason }) => ({ path, reason })),
    diffs: answer.textPatches.map(({ name, rung, failure }) => ({ name, rung, failure })),
  };
}

function stepOf(step: RunStepResult): RanStep {
  const { name, exitCode, signal, timedOut, outOfMemory, outputTruncated, wallMs, stdout, stderr } = step;
  const files = step.files.map(({ path, content, refused }) => ({ path, content, refused }));
  return { name, exitCode, signal, timedOut, outOfMemory, outputTruncated, wallMs, stdout, stderr, files };
}

export function stepNamed(run: RunRecord, name: string): RanStep | undefined {
  return run.steps.find((step) => step.name === name);
}

/** Something seen that an honest run does not show. */
export type Noticed = Pick<Finding, "subject" | "detail">;
