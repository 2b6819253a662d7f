/**
 * Owns one model call as the aligner sees it, and as it is remembered: by digests alone, so that a call known
 * from its turn record is as good as one that was seen. What is concluded from calls is align.ts's.
 */
import type { Turn, TurnRelation, TurnRole } from "@mortise/contracts";
import type { Conversation } from "./conversation.js";
import {
  isNoText,
  keyOf,
  type RequestDigests,
  startsWithDigest,
  type TextDigest,
  textDigest,
} from "./digests.js";
import type { CallSignals } from "./signals/types.js";

/** A request, read: its normalised conversation, the digests of that, and what the call says of itself. */
export interface Call {
  readonly conversation: Conversation;
  readonly digests: RequestDigests;
  readonly signals: CallSignals;
}

/** Something a request held that did not reach the policy, or was not compared, as it was; kept with the turn. */
export interface AuditNote {
  /** What was done, kebab-case: `volatile-header-dropped`, `image-replaced`, `arguments-recovered`, … */
  readonly what: string;
  /** Where, as the dialect names it: `system[0]`, `messages[3].content[1]`. */
  readonly field: string;
}

/** What a call turned out to be for. */
export type CallPurpose = "agent" | "compaction" | "title" | "helper";

/** What was concluded of a call and is remembered. */
export interface Conclusion {
  readonly thread: string;
  readonly purpose: CallPurpose;
  readonly relation: TurnRelation;
  readonly role: TurnRole;
  readonly roleReason: string;
  /** The first call with the same body, where this is a retry of it. */
  readonly retryOf: string | undefined;
  /** Turn whose reply the history repeats last. */
  readonly follows: string | undefined;
  /** Call whose reply started the sub-agent; only in the first call of its thread. */
  readonly spawnedBy: string | undefined;
}

export interface LastUserText {
  /** Its place among the messages. */
  readonly message: number;
  readonly text: TextDigest;
}

/** `captured`: its tokens are in the tree. `failed`: it ended without any. */
export type CallState = "open" | "captured" | "failed";

export interface KnownCall extends Conclusion {
  readonly id: string;
  readonly body: string;
  readonly tools: Uint8Array;
  readonly messageCount: number;
  /** Digest of the request's last message. */
  readonly lastMessage: Uint8Array | undefined;
  /** The request's last text of a user. */
  readonly lastUser: LastUserText | undefined;
  /** Of what was said in the request; undefined for a call known from its record. */
  readonly spoken: string | undefined;
  readonly agent: string | undefined;
  readonly session: string | undefined;
  readonly harness: string;
  readonly model: string | undefined;
  readonly window: string | undefined;
  state: CallState;
  /** Refused because its context was too long: harnesses compact after that. */
  isOverflow: boolean;
  /** The captured turn. */
  turn: Turn | undefined;
}

export function knownCall(id: string, call: Call, conclusion: Conclusion): KnownCall {
  const { digests, signals } = call;
  const { thread, purpose, relation, role, roleReason, retryOf, follows, spawnedBy } = conclusion;
  return {
    ...{ id, thread, purpose, relation, role, roleReason, retryOf, follows, spawnedBy },
    body: keyOf(digests.body),
    tools: digests.tools,
    messageCount: digests.messages.length,
    lastMessage: digests.messages.at(-1)?.digest,
    lastUser: lastUserText(call.conversation),
    spoken: keyOf(digests.spoken),
    agent: signals.agent,
    session: signals.session,
    harness: signals.harness,
    model: signals.model,
    window: signals.window,
    state: "open",
    isOverflow: false,
    turn: undefined,
  };
}

const PURPOSES: readonly CallPurpose[] = ["agent", "compaction", "title", "helper"];

/** The call that a recorded turn answered. */
export function callOfTurn(turn: Turn): KnownCall {
  return {
    id: turn.turn,
    thread: turn.thread,
    purpose: PURPOSES.find((purpose) => purpose === turn.purpose) ?? "agent",
    relation: turn.relation,
    role: turn.role,
    roleReason: turn.roleReason,
    retryOf: turn.retryOf || undefined,
    follows: turn.follows || undefined,
    spawnedBy: turn.spawnedBy || undefined,
    body: keyOf(turn.bodyDigest),
    tools: turn.toolsDigest,
    messageCount: turn.keptMessages + turn.messageDigests.length,
    lastMessage: turn.messageDigests.at(-1),
    lastUser: turn.lastUserText && { message: turn.lastUserMessage, text: turn.lastUserText },
    spoken: undefined,
    agent: turn.agent || undefined,
    session: turn.harnessSession || undefined,
    harness: turn.harness || "generic",
    model: turn.model || undefined,
    window: turn.window || undefined,
    state: "captured",
    isOverflow: false,
    turn,
  };
}

export function lastUserText({ messages }: Conversation): LastUserText | undefined {
  const message = messages.findLastIndex((one) => one.role === "user");
  return message < 0 ? undefined : { message, text: textDigest(messages[message]!.text) };
}

/**
 * Whether the user's last text goes on where that of an earlier call ended, in the same place: harnesses extend
 * it when a reply was dropped as empty, and to ask for a summary.
 */
export function extendsLastText({ conversation }: Call, earlier: KnownCall): boolean {
  const now = lastUserText(conversation);
  const before = earlier.lastUser;
  if (!now || !before || now.message !== before.message || now.text.length <= before.text.length)
    return false;
  return startsWithDigest(conversation.messages[now.message]!.text, before.text);
}

/** Whether the reply had anything a user sees: text or calls, not thinking alone. */
export function hasVisibleReply({ toolCalls, textDigest: text }: Turn): boolean {
  return toolCalls.length > 0 || !isNoText(text);
}
