/**
 * Owns how a captured reply is recognised in the assistant message a harness sent back, and how much of it the
 * message keeps (C4). Ids of calls decide; names, arguments and reasoning may be respelled. Without calls the
 * text decides. Compares one message with one turn; the history before it is the turn tree's.
 */
import type { SampledToolCall, Turn } from "@mortise/contracts";
import { comparedId, type DigestedMessage, equalBytes, isNoText } from "./digests.js";

export interface AdoptedReply {
  /** Only the beginning came back: what was sampled behind it is not adopted. */
  readonly isPartial: boolean;
  /** Leading sampled ids the message stands for; undefined where no token ends what it keeps. */
  readonly tokens: number | undefined;
}

/** What of the turn's reply `echo` repeats; undefined when it is another reply. */
export function adoptedReply(turn: Turn, echo: DigestedMessage): AdoptedReply | undefined {
  if (echo.role !== "assistant") return undefined;
  return echo.callIds.length > 0 ? adoptedCalls(turn, echo.callIds) : adoptedText(turn, echo);
}

/** Number of ids the turn sampled. */
export function sampledCount(turn: Turn): number {
  return turn.sampledIds.byteLength / 4;
}

function adoptedCalls(turn: Turn, ids: readonly string[]): AdoptedReply | undefined {
  const { toolCalls } = turn;
  if (!ids.every((id, at) => isEchoOf(id, toolCalls[at]))) return undefined;
  if (ids.length === toolCalls.length) return { isPartial: false, tokens: sampledCount(turn) };
  return { isPartial: true, tokens: toolCalls[ids.length - 1]!.tokenEnd };
}

/** A call that was given no id gets one from the harness; then its place among the calls tells it. */
function isEchoOf(id: string, call: SampledToolCall | undefined): boolean {
  return call !== undefined && (call.id === "" || id === comparedId(call.id));
}

function adoptedText(turn: Turn, { textDigest }: DigestedMessage): AdoptedReply | undefined {
  if (!equalBytes(turn.textDigest, textDigest!)) return undefined;
  const [first] = turn.toolCalls;
  if (first && isNoText(textDigest!)) return undefined;
  if (!first) return { isPartial: false, tokens: sampledCount(turn) };
  // The text before the calls, and none of them: the connection broke inside the first.
  const start = first.tokenStart ?? 0;
  return { isPartial: true, tokens: start > 0 ? start : undefined };
}
