/**
 * Owns reading the captured turns of a trial as a conversation: for each turn what was new in its context, what it said,
 * and what its calls were answered. Does not judge it (packages/evaluation) and writes no file.
 */
import { MAIN_THREAD, TurnTree, unpackIds } from "@mortise/capture";
import { type Turn, TurnRole } from "@mortise/contracts";
import type { Transcript } from "@mortise/evaluation";
import type { ContextMessage } from "./context-messages.js";
import type { PolicyText, ReadReply } from "./policy-text.js";

export interface ReadTurn {
  readonly turn: Turn;
  /** The exact ids it was sampled under. */
  readonly context: Int32Array;
  /** Messages behind the last reply its context holds. */
  readonly added: readonly ContextMessage[];
  /** The context is a whole rendering although the thread has turns: a history that was rewritten or rendered anew. */
  readonly isWhole: boolean;
  readonly reply: ReadReply;
  /** Of the calls in their order; undefined where the next turn does not show it. */
  readonly results: readonly (string | undefined)[];
}

/** @param turns of one trial, in any order */
export function readTranscript(turns: readonly Turn[], text: PolicyText): ReadTurn[] {
  const ordered = [...turns].sort((a, b) => a.index - b.index);
  const tree = new TurnTree();
  for (const turn of ordered) tree.add(turn);
  const read = ordered.map((turn) => {
    const context = tree.contextOf(turn.turn);
    return { turn, context, added: addedMessages(turn, context, text), reply: text.reply(turn) };
  });
  return read.map((one, at) => {
    const next = read.slice(at + 1).find(({ turn }) => goesOn(turn, one.turn));
    const answers = next?.added.filter(({ role }) => role === "tool").map((message) => message.text) ?? [];
    return {
      ...one,
      isWhole:
        one.turn.prefixLength === 0 && read.slice(0, at).some(({ turn }) => turn.thread === one.turn.thread),
      results: one.reply.calls.map((_, call) => answers[call]),
    };
  });
}

/** What the main agent did, for the behaviour scan. */
export function mainTranscript(read: readonly ReadTurn[], harness: string): Transcript {
  const main = read.filter(({ turn }) => turn.thread === MAIN_THREAD && turn.role === TurnRole.TRAIN);
  return {
    harness,
    // Which tools were offered is captured as a digest only.
    offered: undefined,
    turns: main.map(({ reply, results }) => ({
      text: reply.text,
      calls: reply.calls.map((call, at) => ({ ...call, result: results[at] })),
    })),
  };
}

/** A turn's own parent, or, where histories are rendered whole, the turn whose reply it repeats. */
function goesOn(next: Turn, from: Turn): boolean {
  return next.parent === from.turn || next.follows === from.turn;
}

function addedMessages(turn: Turn, context: Int32Array, text: PolicyText): ContextMessage[] {
  const messages = text.messages(turn.prefixLength > 0 ? unpackIds(turn.suffixIds) : context);
  const reply = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.slice(reply + 1);
}
