/**
 * Owns the turn tree of one session: which captured turn a request extends, how many of its ids are kept,
 * and the exact context of every turn. Works on immutable Turn records and digests alone, so the same tree
 * is rebuilt from the journal after a restart. Does not render, sample or judge delivery.
 *
 * T1  A turn's context is the kept prefix of (parent context + parent sampled ids) followed by its own
 *     suffix; nothing is decoded and encoded again (C1, C2).
 * T2  A request attaches to the deepest turn whose messages and reply it repeats, with the same tools (C4).
 * T3  A parent is always cited with at least part of its reply: citing a turn is adopting it.
 */
import { Delivery, MortiseError, type Turn, TurnRelation } from "@mortise/contracts";
import type { DigestedMessage, RequestDigests } from "./digests.js";
import { unpackIds } from "./packed.js";

/** Where a request hangs in the tree. */
export interface Attachment {
  readonly relation: TurnRelation;
  readonly thread: string;
  readonly parent: Turn | undefined;
  /** Leading ids of (parent context + parent sampled) to keep; 0 without a parent. */
  readonly prefixLength: number;
  /** Leading messages of the request those ids stand for, the echoed reply included; 0 without a parent. */
  readonly keptMessages: number;
  /** Only the first calls of the reply came back: what was sampled after them is not adopted. */
  readonly isPartial: boolean;
}

interface Node {
  readonly turn: Turn;
  readonly parent: Node | undefined;
  /** Context ids followed by sampled ids. */
  readonly ids: Int32Array;
  readonly contextLength: number;
}

interface Candidate {
  readonly node: Node;
  readonly prefixLength: number;
  readonly isPartial: boolean;
}

export class TurnTree {
  private readonly nodes = new Map<string, Node>();

  /** Turns in the order they were added. */
  get turns(): Turn[] {
    return [...this.nodes.values()].map((node) => node.turn);
  }

  /** Adds a captured turn after its parent; throws MORTISE_CAPTURE_INVALID when it contradicts the tree. */
  add(turn: Turn): void {
    if (this.nodes.has(turn.turn)) throw invalid(turn, "is recorded twice");
    const parent = turn.parent === "" ? undefined : this.nodes.get(turn.parent);
    if (turn.parent !== "" && !parent) throw invalid(turn, `names the unknown parent ${turn.parent}`);
    if (turn.prefixLength > (parent?.ids.length ?? 0))
      throw invalid(turn, "keeps more ids than its parent has");
    if (parent && turn.prefixLength <= parent.contextLength)
      throw invalid(turn, "keeps no part of its parent's reply");
    const suffix = unpackIds(turn.suffixIds);
    const sampled = unpackIds(turn.sampledIds);
    const contextLength = turn.prefixLength + suffix.length;
    const ids = new Int32Array(contextLength + sampled.length);
    if (parent) ids.set(parent.ids.subarray(0, turn.prefixLength));
    ids.set(suffix, turn.prefixLength);
    ids.set(sampled, contextLength);
    this.nodes.set(turn.turn, { turn, parent, ids, contextLength });
  }

  /** The ids a turn was sampled under (T1). A view: do not write to it. */
  contextOf(turn: string): Int32Array {
    const node = this.nodeOf(turn);
    return node.ids.subarray(0, node.contextLength);
  }

  /** Context and sampled ids of a turn. A view: do not write to it. */
  idsOf(turn: string): Int32Array {
    return this.nodeOf(turn).ids;
  }

  /** Turns whose request had the same normalised body, oldest first (C6). */
  sameBody(request: RequestDigests): Turn[] {
    return this.turns.filter((turn) => equalBytes(turn.bodyDigest, request.body));
  }

  /**
   * Where a request hangs (C4). Among several turns it may extend, the deepest wins; at equal depth, whole
   * replies before partly adopted ones, then delivered before undecided before abandoned, then the latest.
   * The latest is always one turn, because a session numbers its turns.
   */
  attach(request: RequestDigests, deliveryOf: (turn: string) => Delivery): Attachment {
    const best = this.candidates(request).sort((a, b) => preference(a, b, deliveryOf))[0];
    const isRetry = this.sameBody(request).length > 0;
    if (!best) {
      const related = this.relatedRoot(request);
      const fresh = related ? TurnRelation.BRANCH : TurnRelation.ROOT;
      return {
        relation: isRetry ? TurnRelation.RETRY : fresh,
        thread: related?.turn.thread ?? `h${this.threadCount()}`,
        parent: undefined,
        prefixLength: 0,
        keptMessages: 0,
        isPartial: false,
      };
    }
    const { node, prefixLength, isPartial } = best;
    const follows = this.hasChild(node) ? TurnRelation.BRANCH : TurnRelation.EXTENDS;
    return {
      relation: isRetry ? TurnRelation.RETRY : follows,
      thread: node.turn.thread,
      parent: node.turn,
      prefixLength,
      keptMessages: node.turn.messageDigests.length + 1,
      isPartial,
    };
  }

  private candidates(request: RequestDigests): Candidate[] {
    const found: Candidate[] = [];
    for (const node of this.nodes.values()) {
      const { turn } = node;
      const reply = request.messages[turn.messageDigests.length];
      if (reply === undefined || request.messages.length <= turn.messageDigests.length + 1) continue;
      if (!equalBytes(turn.toolsDigest, request.tools)) continue;
      const adopted = adoptedTokens(turn, node.ids.length - node.contextLength, reply);
      if (adopted === undefined || !matchesHistory(node, request.messages)) continue;
      const sampled = node.ids.length - node.contextLength;
      found.push({ node, prefixLength: node.contextLength + adopted, isPartial: adopted < sampled });
    }
    return found;
  }

  /** A root that begins with the same message: its thread was rewritten, compacted, truncated or re-asked. */
  private relatedRoot(request: RequestDigests): Node | undefined {
    const first = firstSpoken(request.messages.map((message) => message.role));
    const digest = request.messages[first]?.digest;
    if (!digest) return undefined;
    for (const node of this.nodes.values())
      if (
        !node.parent &&
        equalBytes(node.turn.toolsDigest, request.tools) &&
        node.turn.messageDigests.some((known) => equalBytes(known, digest))
      )
        return node;
    return undefined;
  }

  private hasChild(node: Node): boolean {
    for (const other of this.nodes.values()) if (other.parent === node) return true;
    return false;
  }

  private threadCount(): number {
    return new Set(this.turns.map((turn) => turn.thread)).size;
  }

  private nodeOf(turn: string): Node {
    const node = this.nodes.get(turn);
    if (node) return node;
    throw new MortiseError({ code: "MORTISE_CAPTURE_INVALID", message: `Turn ${turn} is not recorded.` });
  }
}

/** Sampled ids of `turn` that an echoed assistant message stands for; undefined when it is another reply. */
function adoptedTokens(turn: Turn, sampled: number, reply: DigestedMessage): number | undefined {
  if (reply.role !== "assistant") return undefined;
  if (reply.callIds.length === 0) {
    const isSameText = turn.toolCalls.length === 0 && equalBytes(turn.textDigest, reply.textDigest!);
    return isSameText ? sampled : undefined;
  }
  if (!reply.callIds.every((id, at) => turn.toolCalls[at]?.id === id)) return undefined;
  if (reply.callIds.length === turn.toolCalls.length) return sampled;
  return turn.toolCalls[reply.callIds.length - 1]!.tokenEnd;
}

/**
 * Whether the request repeats every message the turn was asked with. Replies of ancestors match by call id
 * or text, as the harness may respell them later; every other message must have the same digest.
 */
function matchesHistory(node: Node, messages: readonly DigestedMessage[]): boolean {
  const replies = new Map<number, Node>();
  for (let up = node.parent; up; up = up.parent) replies.set(up.turn.messageDigests.length, up);
  return node.turn.messageDigests.every((digest, at) => {
    const message = messages[at]!;
    if (equalBytes(digest, message.digest)) return true;
    const ancestor = replies.get(at);
    if (!ancestor) return false;
    const kept = keptOfReply(node, ancestor);
    return adoptedTokens(ancestor.turn, ancestor.ids.length - ancestor.contextLength, message) === kept;
  });
}

/** How many sampled ids of `ancestor` the path down to `node` keeps. */
function keptOfReply(node: Node, ancestor: Node): number {
  let child = node;
  while (child.parent !== ancestor) child = child.parent!;
  return child.turn.prefixLength - ancestor.contextLength;
}

function firstSpoken(roles: readonly DigestedMessage["role"][]): number {
  const at = roles.findIndex((role) => role !== "system");
  return Math.max(at, 0);
}

const DELIVERY_RANK: Record<Delivery, number> = {
  [Delivery.DELIVERED]: 0,
  [Delivery.UNDECIDED]: 1,
  [Delivery.UNSPECIFIED]: 1,
  [Delivery.ABANDONED]: 2,
};

function preference(a: Candidate, b: Candidate, deliveryOf: (turn: string) => Delivery): number {
  return (
    b.node.turn.messageDigests.length - a.node.turn.messageDigests.length ||
    Number(a.isPartial) - Number(b.isPartial) ||
    DELIVERY_RANK[deliveryOf(a.node.turn.turn)] - DELIVERY_RANK[deliveryOf(b.node.turn.turn)] ||
    b.node.turn.index - a.node.turn.index
  );
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

function invalid(turn: Turn, what: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_CAPTURE_INVALID",
    message: `Turn ${turn.turn} of trial ${turn.trial} ${what}.`,
    detail: { run: turn.run, trial: turn.trial, turn: turn.turn },
  });
}
