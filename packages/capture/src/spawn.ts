/**
 * Owns which call started a sub-agent: the one whose reply called a tool with the text the sub-agent's
 * conversation opens with. Where no text tells, the open call of the parent, as tools may start before a reply
 * has ended; then the oldest of the parent's calls that looks like a start and started nobody yet.
 */
import type { SampledToolCall, Turn } from "@mortise/contracts";
import type { Call, KnownCall } from "./call.js";
import type { CallLog, Thread } from "./call-log.js";
import { endsWithDigest, startsWithDigest, type TextDigest } from "./digests.js";

/** Shorter texts are found in too many places by chance. */
const MIN_PROMPT_LENGTH = 8;
/** Names of tools that start agents, in every measured harness. */
const STARTS_AN_AGENT = /agent|task|delegate|spawn/i;

/** @param isParent among whose calls it is looked for */
export function spawningCall(
  call: Call,
  log: CallLog,
  isParent: (thread: Thread) => boolean,
): KnownCall | undefined {
  const calls = [...log.threads.values()].filter(isParent).flatMap((thread) => thread.agentCalls);
  return (
    promptedBy(call, calls, log) ??
    calls.findLast(({ state }) => state === "open") ??
    calls.find((one) => unclaimed(one, log, startsOf(one.turn)) > 0) ??
    calls.findLast(({ turn }) => turn !== undefined && turn.toolCalls.length > 0)
  );
}

/** The call that gave the sub-agent its prompt: the longest text that fits, then who has one unclaimed. */
export function promptedBy(call: Call, calls: readonly KnownCall[], log: CallLog): KnownCall | undefined {
  const texts = openingTexts(call);
  let best: { by: KnownCall; length: number; isFree: boolean } | undefined;
  for (const by of calls) {
    const fitting = (by.turn?.toolCalls ?? []).filter((one) => promptLength(one, texts) > 0);
    if (fitting.length === 0) continue;
    const length = Math.max(...fitting.map((one) => promptLength(one, texts)));
    const isFree = unclaimed(by, log, fitting.length) > 0;
    const isBetter = !best || length > best.length || (length === best.length && isFree && !best.isFree);
    if (isBetter) best = { by, length, isFree };
  }
  return best?.by;
}

/** Texts of the user before anybody answered, and the last one: an agent may begin with a copy of a history. */
function openingTexts({ conversation: { messages } }: Call): string[] {
  const end = messages.findIndex((message) => message.role === "assistant");
  const opening = end < 0 ? messages : [...messages.slice(0, end), messages.at(-1)!];
  return opening.filter((message) => message.role === "user").map((message) => message.text);
}

function promptLength({ texts }: SampledToolCall, openings: readonly string[]): number {
  const fits = (part: TextDigest) =>
    part.length >= MIN_PROMPT_LENGTH &&
    openings.some((text) => endsWithDigest(text, part) || startsWithDigest(text, part));
  return Math.max(0, ...texts.filter(fits).map((part) => part.length));
}

function startsOf(turn: Turn | undefined): number {
  return turn?.toolCalls.filter(({ name }) => STARTS_AN_AGENT.test(name)).length ?? 0;
}

/** How many of a call's `starts` no thread has claimed yet. */
function unclaimed(by: KnownCall, log: CallLog, starts: number): number {
  const claims = [...log.threads.values()].filter((thread) =>
    thread.calls.some((call) => call.spawnedBy === by.id),
  ).length;
  return starts - claims;
}
