/**
 * Owns where a call belongs: its thread, its relation to earlier calls, the turn whose ids it keeps, and what
 * becomes of its tokens (C4, C6). Pure: reads the tree and changes nothing. The README of this package shows
 * the rules on a picture.
 *
 * R1  retry: the same body was asked before, since the history was last compacted, and that call has ended; or
 *     the thread's last call was refused without a token and this one says the same, with other tools or system
 *     text.
 * R2  auxiliary: titles, compactions and other helpers; they stand on the thread of the agent they serve.
 * R3  root: the first turn of a thread, and the first after its history was compacted.
 * R4  extends: it repeats a turn's messages and reply, and is the first to go on from there.
 * R5  branch: it goes on from a turn that was gone on from before; or from none, on a thread that has turns.
 */
import { type Delivery, type Turn, TurnRelation, type TurnRole } from "@mortise/contracts";
import { type Call, type CallPurpose, type Conclusion, extendsLastText, type KnownCall } from "./call.js";
import type { CallLog, Thread } from "./call-log.js";
import { keyOf } from "./digests.js";
import { purposeOf } from "./purpose.js";
import { roleOf } from "./roles.js";
import {
  MAIN_THREAD,
  namedThread,
  newThread,
  type PlacedThread,
  spawnerOfNamed,
  type ThreadFacts,
  threadOfHistory,
} from "./threads.js";
import type { Extension, ExtensionSearch, TurnTree } from "./turn-tree.js";

/** Something about an alignment that a reader of the record should know. */
export type AlignmentFlag =
  /** The harness changed the name of a call it sent back. */
  | "call-renamed"
  /** Only the beginning of the extended reply came back. */
  | "adopted-partial"
  /** No token ends what came back of the reply: the history is rendered whole. */
  | "adopted-as-text"
  /** It repeats a turn's history, but offers other tools. */
  | "tools-changed"
  /** The last text of the user is that of an earlier call, with more behind it. */
  | "last-user-text-extended"
  /** It says what a refused call said, with other tools or system text. */
  | "degraded-resend"
  /** Its role cannot be told. */
  | "quarantined";

/** Where a call belongs, and what of the tree its context begins with. */
export interface Alignment extends Conclusion {
  readonly role: TurnRole;
  /** Turn whose ids the context begins with. */
  readonly parent: Turn | undefined;
  /** Leading ids of (parent context + parent sampled) to keep; 0 without a parent. */
  readonly prefixLength: number;
  /** Leading messages of the request those ids stand for, the echoed reply included; 0 without a parent. */
  readonly keptMessages: number;
  /** Only the beginning of the reply came back: what was sampled after it is not adopted. */
  readonly isPartial: boolean;
  readonly flags: readonly AlignmentFlag[];
}

export interface AlignOptions {
  /** How far a turn's reply was delivered. */
  readonly deliveryOf: (turn: string) => Delivery;
  /** Text of a captured reply without its calls; absent where it is not at hand. */
  readonly textOf?: (turn: Turn) => string | undefined;
}

export function align(tree: TurnTree, call: Call, options: AlignOptions): Alignment {
  const log = tree.calls;
  const facts = { call, log };
  const named = namedThread(facts);
  const search = searchFor(call, named, log, options);
  const extension = tree.extension(call.digests, search);
  const changed = extension ? undefined : tree.extensionWithOtherTools(call.digests, search);
  const sameBody = log.sameBody(call.digests);
  const continued = extension ?? changed;
  const thread = named ?? threadOfHistory(facts, continued, sameBody[0]);
  // Who has a name and no call yet is not the main agent, and serves nobody.
  const served = thread ?? (call.signals.namesAgents ? undefined : log.threads.get(MAIN_THREAD));
  const purpose = purposeOf({
    ...{ call, log, extension, continued },
    ...{ thread: served, firstTry: sameBody[0], deliveryOf: options.deliveryOf },
  });
  const placed = thread ? undefined : newThread(facts, purpose);
  const home = thread ?? log.threads.get(placed!.id);
  const tries = standing(sameBody, purpose, home);
  const tried = firstTry(call, purpose, home, tries);
  const isFresh = purpose === "agent" && startsAfresh(call, home, extension);
  const kept = isFresh ? undefined : extension;
  const relation = tried ? TurnRelation.RETRY : relationOf(purpose, { home, log, kept, isFresh });
  const { role, reason } = roleOf(purpose, home, placed?.origin);
  return {
    thread: home?.id ?? placed!.id,
    purpose,
    relation,
    role,
    roleReason: reason,
    retryOf: tried && (tried.retryOf ?? tried.id),
    follows: kept?.turn.turn,
    spawnedBy: relation === TurnRelation.ROOT && !isFresh ? spawnerOf(facts, placed)?.id : undefined,
    parent: kept && kept.prefixLength > 0 ? kept.turn : undefined,
    prefixLength: kept?.prefixLength ?? 0,
    keptMessages: kept?.keptMessages ?? 0,
    isPartial: kept?.isPartial ?? false,
    flags: [
      ...extensionFlags(call, kept),
      ...(changed && purpose === "agent" ? (["tools-changed"] as const) : []),
      ...(tried && tries.length === 0 ? (["degraded-resend"] as const) : []),
      ...(!tried && home?.lastOfAgent && extendsLastText(call, home.lastOfAgent)
        ? (["last-user-text-extended"] as const)
        : []),
      ...(placed?.origin === "unknown" ? (["quarantined"] as const) : []),
    ],
  };
}

function searchFor(
  { conversation, signals }: Call,
  named: Thread | undefined,
  log: CallLog,
  { deliveryOf, textOf }: AlignOptions,
): ExtensionSearch {
  return {
    deliveryOf,
    isCandidate: ({ thread }) => {
      if (named) return thread === named.id;
      // A new agent has a history of its own, even where it was given a copy of its parent's.
      if (signals.agent !== undefined) return false;
      return !signals.namesAgents || log.threads.get(thread)?.agent === undefined;
    },
    isBeginning: (turn, at) => {
      const echo = conversation.messages[at]!;
      const text = echo.text.trim();
      const hasCalls = echo.role === "assistant" && echo.toolCalls.length > 0;
      return text !== "" && !hasCalls && (textOf?.(turn)?.trimStart().startsWith(text) ?? false);
    },
  };
}

/**
 * Of the calls with the same body, those a new one may try again: what was asked before a compaction has been
 * compacted, and a summary was had before the agent went on. Two summaries in the same words start two
 * histories with the same request.
 */
function standing(
  sameBody: readonly KnownCall[],
  purpose: CallPurpose,
  home: Thread | undefined,
): readonly KnownCall[] {
  if (!home || sameBody.length === 0 || (purpose !== "agent" && purpose !== "compaction")) return sameBody;
  const other = purpose === "agent" ? "compaction" : "agent";
  const border = home.calls.findLastIndex((one) => one.purpose === other && one.state === "captured");
  const since = new Set(home.calls.slice(border + 1));
  return sameBody.filter((one) => since.has(one));
}

/** R1: the call this one tries again. */
function firstTry(
  { digests }: Call,
  purpose: CallPurpose,
  home: Thread | undefined,
  tries: readonly KnownCall[],
): KnownCall | undefined {
  // Two that are both being answered are two samples (C6).
  if (tries.length > 0) return tries.some(({ state }) => state !== "open") ? tries[0] : undefined;
  const last = home?.calls.findLast((one) => one.purpose === purpose);
  return last?.state === "failed" && last.spoken === keyOf(digests.spoken) ? last : undefined;
}

/** R3: a compaction, or a new window, stands between this call and the agent's history. */
function startsAfresh(
  { signals }: Call,
  home: Thread | undefined,
  extension: Extension | undefined,
): boolean {
  const last = home?.lastOfAgent;
  if (!last) return false;
  const lastTurn = home.agentCalls.findLast(({ state }) => state === "captured");
  if (extension && extension.turn.turn === lastTurn?.id) return false;
  if (last.purpose === "compaction") return true;
  return signals.window !== undefined && last.window !== undefined && signals.window !== last.window;
}

function spawnerOf(facts: ThreadFacts, placed: PlacedThread | undefined): KnownCall | undefined {
  return facts.call.signals.agent === undefined ? placed?.spawnedBy : spawnerOfNamed(facts);
}

function relationOf(
  purpose: CallPurpose,
  at: { home: Thread | undefined; log: CallLog; kept: Extension | undefined; isFresh: boolean },
): TurnRelation {
  const { home, log, kept, isFresh } = at;
  if (purpose !== "agent") return TurnRelation.AUXILIARY; // R2
  if (isFresh || !home || home.agentCalls.length === 0) return TurnRelation.ROOT; // R3
  if (!kept) return TurnRelation.BRANCH; // R5
  const isGoneOnFrom = log
    .followersOf(kept.turn.turn)
    .some((one) => one.purpose === "agent" && one.state !== "failed");
  return isGoneOnFrom ? TurnRelation.BRANCH : TurnRelation.EXTENDS; // R4, R5
}

function extensionFlags({ conversation }: Call, kept: Extension | undefined): AlignmentFlag[] {
  if (!kept) return [];
  const flags: AlignmentFlag[] = [];
  if (kept.isPartial) flags.push("adopted-partial");
  if (kept.prefixLength === 0) flags.push("adopted-as-text");
  const echo = conversation.messages[kept.keptMessages - 1];
  const isRenamed =
    echo?.role === "assistant" &&
    echo.toolCalls.some(({ name }, at) => name !== kept.turn.toolCalls[at]?.name);
  return isRenamed ? [...flags, "call-renamed"] : flags;
}
