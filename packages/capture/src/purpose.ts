/**
 * Owns what a call is for where the call itself does not say: an agent's turn, the compaction of a history, a
 * title, or another helper. Knows the shapes of calls and the history before them, no harness's words. Whose
 * call it is and what becomes of its tokens is align.ts's and roles.ts's.
 *
 * P1  A retry is for what its first try was for, and who goes on from a helper's reply is that helper.
 * P2  Who offers tools is an agent, but for a call after one whose visible reply is gone, or which was refused
 *     as too long: when it ends where that one ended (or, refused, an earlier one), with one more text of the
 *     user, or carries the mark of compactions, it compacts. Only where the harness is known to keep every
 *     visible reply; of a reply that was cut it keeps what it saw of it, so behind that the mark alone counts.
 * P3  Who offers none in a session of agents with tools: an agent where it goes on from an agent's reply, or is
 *     the first call of an agent that the harness names; repeating an agent's history it compacts; before its
 *     agent's first turn, or while that is being answered, or for another model, it is a title; the rest is
 *     told by what the harness is known to do.
 * P4  In a session where nobody offers tools they are in the text, and every conversation is an agent's.
 */
import { Delivery, TurnRelation } from "@mortise/contracts";
import { type Call, type CallPurpose, extendsLastText, hasVisibleReply, type KnownCall } from "./call.js";
import type { CallLog, Thread } from "./call-log.js";
import { digestTools, equalBytes, keyOf } from "./digests.js";
import type { Extension } from "./turn-tree.js";

const NO_TOOLS = digestTools([]);

/** Harnesses in which every reply a user could see comes back in the next request. */
const KEEPS_VISIBLE_REPLIES = new Set(["claude-code"]);
/** Harnesses whose calls without tools are titles before their agent's first turn and compactions after it. */
const TITLES_AND_COMPACTS = new Set(["opencode"]);
/** Harnesses whose only calls without tools compact. */
const ONLY_COMPACTS = new Set(["pi", "openhands"]);

export interface PurposeFacts {
  readonly call: Call;
  readonly log: CallLog;
  /** The thread it belongs to or serves, when there is one already. */
  readonly thread: Thread | undefined;
  readonly firstTry: KnownCall | undefined;
  readonly extension: Extension | undefined;
  /** Like `extension`, had the tools not changed. */
  readonly continued: Extension | undefined;
  /** How far a turn's reply was delivered. */
  readonly deliveryOf: (turn: string) => Delivery;
}

export function purposeOf(facts: PurposeFacts): CallPurpose {
  const { call, log, firstTry, extension } = facts;
  if (firstTry) return firstTry.purpose; // P1
  const stated = call.signals.purpose;
  if (stated !== undefined && stated !== "side") return stated;
  const extended = extension && log.call(extension.turn.turn);
  if (extended && extended.purpose !== "agent") return extended.purpose;
  if (!equalBytes(call.digests.tools, NO_TOOLS)) return compactsWithTools(facts) ? "compaction" : "agent"; // P2
  if (stated === undefined && !log.hasToolUsers) return "agent"; // P4
  return purposeWithoutTools(facts); // P3
}

/** P2 */
function compactsWithTools({ call, thread, continued, deliveryOf }: PurposeFacts): boolean {
  const { harness, mayCompact } = call.signals;
  const last = thread?.calls.findLast(({ purpose }) => purpose === "agent");
  if (!last || !KEEPS_VISIBLE_REPLIES.has(harness) || continued?.turn.turn === last.id) return false;
  const isGone = last.turn ? hasVisibleReply(last.turn) : last.isOverflow;
  if (!isGone || mayCompact) return isGone;
  if (last.turn && deliveryOf(last.turn.turn) === Delivery.ABANDONED) return false;
  // What was refused as too long is cut back until it may fit: the history may end where an earlier call ended.
  const ends = last.isOverflow ? thread!.calls.filter(({ purpose }) => purpose === "agent") : [last];
  return ends.some((end) => endsAsExtensionOf(call, end));
}

/** Whether the request ends where the other did, with more of the user's text behind that or in it. */
function endsAsExtensionOf(call: Call, last: KnownCall): boolean {
  const { messages } = call.digests;
  const added = messages.findLastIndex((message) => message.role !== "system");
  if (messages[added]?.role !== "user") return false;
  if (extendsLastText(call, last)) return true;
  const end = added === messages.length - 1 ? messages[added - 1] : messages.at(-1);
  if (!end || !last.lastMessage || !equalBytes(end.digest, last.lastMessage)) return false;
  // System messages repeat; one is the same end only where as much stands before it.
  return end.role !== "system" || messages.length - 1 === last.messageCount;
}

/** P3 */
function purposeWithoutTools(facts: PurposeFacts): CallPurpose {
  const { call, log, thread } = facts;
  const harness = harnessOf(facts);
  if (facts.extension) return "agent";
  if (repeatsHistory(call, thread)) return "compaction";
  if (TITLES_AND_COMPACTS.has(harness)) return isBesideTheAgent(call, thread) ? "title" : "compaction";
  if (call.signals.agent !== undefined && call.signals.agent !== thread?.id) return "agent";
  if (ONLY_COMPACTS.has(harness) && log.hasToolUsers) return "compaction";
  return thread?.lastOfAgent?.isOverflow ? "compaction" : "helper";
}

/** A call that names no harness is one of the harness whose agent it stands beside. */
function harnessOf({ call, thread }: PurposeFacts): string {
  const { harness } = call.signals;
  return harness === "generic" ? (thread?.calls[0]?.harness ?? harness) : harness;
}

/** The request holds all that one of the agent's requests did, and what the user says behind it. */
function repeatsHistory({ digests }: Call, thread: Thread | undefined): boolean {
  const { messages, history } = digests;
  const ends = messages.flatMap(({ role }, at) =>
    at > 1 && (role === "assistant" || at === messages.length - 1) ? [keyOf(history.before(at))] : [],
  );
  return (
    thread?.calls.some(({ purpose, turn }) => {
      return purpose === "agent" && turn !== undefined && ends.includes(keyOf(turn.historyDigest));
    }) ?? false
  );
}

function isBesideTheAgent({ signals }: Call, thread: Thread | undefined): boolean {
  const first = thread?.calls.find(({ purpose }) => purpose === "agent");
  if (!first) return true;
  if (signals.model !== undefined && first.model !== undefined && signals.model !== first.model) return true;
  const isFirstTurn = thread!.calls.every(
    ({ purpose, relation }) => purpose !== "agent" || relation !== TurnRelation.EXTENDS,
  );
  return isFirstTurn && first.state === "open";
}
