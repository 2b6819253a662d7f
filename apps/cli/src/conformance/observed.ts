/** Owns what a case is judged by: what the harness did, what was captured, and questions both can be asked. */
import type { AssembledTrial } from "@mortise/capture";
import { type SessionSealed, type Turn, TurnRelation, TurnRole } from "@mortise/contracts";
import type { HarnessAdapter, HarnessEnd } from "@mortise/harness";
import type { HarnessRun } from "./harness-process.js";
import { MARK, markIn, SIDE_MARK } from "./plan.js";
import type { Played } from "./played-policy.js";
import type { Exchange } from "./relay.js";

export interface Observed {
  readonly adapter: HarnessAdapter;
  readonly process: HarnessRun;
  readonly end: HarnessEnd;
  readonly turns: readonly Turn[];
  readonly seal: SessionSealed;
  /** Absent when the record contradicts itself. */
  readonly trial: AssembledTrial | undefined;
  readonly played: readonly Played[];
  /** Model calls as the wire saw them. */
  readonly calls: readonly Exchange[];
  /** Marks reached in the repository, in order. */
  readonly marks: readonly string[];
}

/** Characters of a harness's output that are kept with a case. */
const OUTPUT_TAIL = 4_000;

/** A claim about a case; the text says what is wrong, undefined that it holds. */
export type Claim = (observed: Observed) => string | undefined;

const RELATION_NAMES: Readonly<Record<TurnRelation, string>> = {
  [TurnRelation.UNSPECIFIED]: "unspecified",
  [TurnRelation.ROOT]: "root",
  [TurnRelation.EXTENDS]: "extends",
  [TurnRelation.RETRY]: "retry",
  [TurnRelation.BRANCH]: "branch",
  [TurnRelation.AUXILIARY]: "auxiliary",
};

export function relationOf(turn: Turn): string {
  return RELATION_NAMES[turn.relation];
}

/** Turns of the thread the harness began with that is trained. */
export function mainThread({ turns }: Observed): Turn[] {
  const first = turns.find((turn) => turn.role === TurnRole.TRAIN);
  return turns.filter((turn) => turn.thread === first?.thread && turn.relation !== TurnRelation.AUXILIARY);
}

/** Threads beside the main one that are trained. */
export function sideThreads(observed: Observed): Turn[][] {
  const main = mainThread(observed)[0]?.thread;
  const threads = new Map<string, Turn[]>();
  for (const turn of observed.turns)
    if (turn.role === TurnRole.TRAIN && turn.thread !== main)
      threads.set(turn.thread, [...(threads.get(turn.thread) ?? []), turn]);
  return [...threads.values()];
}

export const completed: Claim = ({ process, end }) => {
  if (process.isTimedOut) return "the harness did not end in time";
  return end.kind === "completed" ? undefined : `the harness ended as ${end.kind}: ${end.reason}`;
};

export const ended: Claim = ({ process }) =>
  process.isTimedOut ? "the harness did not end in time" : undefined;

/** Every mark up to `last` once, in order. Marks of sub-agents are looked at apart. */
export function reached(...numbers: readonly number[]): Claim {
  return ({ marks }) => {
    const own = marks.filter((mark) => mark.startsWith(MARK));
    const wanted = numbers.map((number) => markIn(MARK, number));
    return own.join(" ") === wanted.join(" ")
      ? undefined
      : `reached ${own.join(" ") || "nothing"}, not ${wanted.join(" ")}`;
  };
}

export function reachedErrands(...numbers: readonly number[]): Claim {
  return ({ marks }) => {
    const own = marks.filter((mark) => mark.startsWith(SIDE_MARK)).join(" ");
    const wanted = numbers.map((number) => markIn(SIDE_MARK, number)).join(" ");
    return own === wanted ? undefined : `the sub-agent reached ${own || "nothing"}, not ${wanted}`;
  };
}

/** The main thread is one conversation: a root, and turns that extend it. */
export function oneConversation(turns: number): Claim {
  return (observed) => {
    const relations = mainThread(observed).map(relationOf);
    const wanted = ["root", ...Array.from({ length: turns - 1 }, () => "extends")];
    return relations.join(" ") === wanted.join(" ")
      ? undefined
      : `the main thread is ${relations.join(" ") || "empty"}, not ${wanted.join(" ")}`;
  };
}

/** The main thread is one path from its root: what was tried again stands where the first try stood. */
export const onePath: Claim = (observed) => {
  const thread = mainThread(observed);
  const at = thread.findIndex((turn, place) => turn.parent !== (thread[place - 1]?.turn ?? ""));
  if (at < 0) return undefined;
  return `turn ${thread[at]!.index} of the main thread (${relationOf(thread[at]!)}) does not follow the one before it`;
};

/** Nothing is trained but the main thread. */
export const nothingBeside: Claim = (observed) => {
  const beside = sideThreads(observed).flat();
  if (beside.length === 0) return undefined;
  return `${beside.length} turns outside the main thread are trained: ${beside.map((turn) => turn.roleReason).join(", ")}`;
};

/** Streams stay on: every turn that is trained went out as one. */
export const streamed: Claim = ({ adapter, calls, turns }) => {
  const streams = calls.filter(({ status, isStream }) => status === 200 && isStream).length;
  const trained = turns.filter((turn) => turn.role === TurnRole.TRAIN).length;
  if (!adapter.behaviour.streams)
    return streams === 0 ? undefined : `${streams} replies were streamed to a harness said not to stream`;
  return streams >= trained ? undefined : `${trained} turns are trained, ${streams} were streamed`;
};

/** Each planned reply was sampled once: what was asked again was answered from the record (C6). */
export const nothingSampledTwice: Claim = ({ played }) => {
  const seen = new Set<string>();
  for (const { request, kind, isFailure } of played) {
    const key = `${kind} ${Buffer.from(request.contextIds.buffer, request.contextIds.byteOffset, request.contextIds.byteLength).toString("latin1")}`;
    if (seen.has(key) && kind === "main")
      return `turn ${request.turnIndex} was sampled again under the same ids`;
    if (!isFailure) seen.add(key);
  }
  return undefined;
};

export function problemsOf(observed: Observed, claims: readonly Claim[]): string[] {
  return claims.flatMap((claim) => claim(observed) ?? []);
}

/** For people who look into a case that was kept: no token, no key, no prompt. */
export function observedText({ process, end, turns, played, calls, marks }: Observed): string {
  const summary = {
    end,
    exitCode: process.exitCode ?? null,
    calls,
    played: played.map(({ request, kind, fault, reply }) => ({
      turn: request.turnIndex,
      kind,
      fault: fault?.kind,
      contextTokens: request.contextIds.length,
      tokens: reply.ids.length,
    })),
    turns: turns.map((turn) => ({
      turn: turn.turn,
      parent: turn.parent,
      relation: relationOf(turn),
      retryOf: turn.retryOf,
      thread: turn.thread,
      role: TurnRole[turn.role],
      roleReason: turn.roleReason,
      purpose: turn.purpose,
      flags: turn.flags,
      sampled: turn.sampledIds.byteLength / 4,
      calls: turn.toolCalls.map(({ name }) => name),
    })),
    marks,
    stdout: process.stdout.slice(-OUTPUT_TAIL),
    stderr: process.stderr.slice(-OUTPUT_TAIL),
  };
  return `${JSON.stringify(summary, null, 2)}\n`;
}
