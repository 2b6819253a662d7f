/**
 * Owns the turn tree of one session: which captured turn a request's history repeats, how many of its ids are
 * kept, and the exact context of every turn. Works on immutable Turn records and digests alone, so the same
 * tree is rebuilt from the journal after a restart. What a request is for and how it is named is align.ts's.
 *
 * T1  A turn's context is the kept prefix of (parent context + parent sampled ids) followed by its own
 *     suffix; nothing is decoded and encoded again (C1, C2).
 * T2  A request attaches to the deepest turn whose messages and reply it repeats, with the same tools (C4).
 * T3  A parent is always cited with at least part of its reply: citing a turn is adopting it.
 * T4  A turn holds only what it adds to its parent, in ids and in digests; finding what a request extends costs
 *     one look-up for each of its assistant messages, however many turns there are.
 */
import { Delivery, MortiseError, type Turn } from "@mortise/contracts";
import { type AdoptedReply, adoptedReply } from "./adopted-reply.js";
import { CallLog } from "./call-log.js";
import { type DigestedMessage, equalBytes, keyOf, type RequestDigests } from "./digests.js";
import { unpackIds } from "./packed.js";

/** The turn whose reply a request's history repeats last. */
export interface Extension {
  readonly turn: Turn;
  /** Leading ids of (parent context + parent sampled) to keep; 0 where no token ends what was adopted. */
  readonly prefixLength: number;
  /** Leading messages of the request those ids stand for, the repeated reply included; 0 with no ids. */
  readonly keptMessages: number;
  readonly isPartial: boolean;
}

export interface ExtensionSearch {
  /** How far a turn's reply was delivered. */
  readonly deliveryOf: (turn: string) => Delivery;
  /** Turns that may be extended. */
  readonly isCandidate: (turn: Turn) => boolean;
  /** How a reply that did not reach its end is recognised by its beginning; never asked of a delivered one. */
  readonly isBeginning: (turn: Turn, message: number) => boolean;
}

interface Node {
  readonly turn: Turn;
  readonly parent: Node | undefined;
  /** Own suffix followed by the sampled ids. */
  readonly added: Int32Array;
  readonly contextLength: number;
  /** Messages of the request it answered. */
  readonly messageCount: number;
}

export class TurnTree {
  /** Every call, captured or not, and the threads they make. */
  readonly calls = new CallLog();
  private readonly nodes = new Map<string, Node>();
  private readonly byHistory = new Map<string, Node[]>();
  private readonly byBody = new Map<string, Turn[]>();
  private readonly ordered: Turn[] = [];

  /** Turns in the order they were added. */
  get turns(): readonly Turn[] {
    return this.ordered;
  }

  /** Adds a captured turn after its parent; throws MORTISE_CAPTURE_INVALID when it contradicts the tree. */
  add(turn: Turn): void {
    if (this.nodes.has(turn.turn)) throw invalid(turn, "is recorded twice");
    const parent = turn.parent === "" ? undefined : this.nodes.get(turn.parent);
    if (turn.parent !== "" && !parent) throw invalid(turn, `names the unknown parent ${turn.parent}`);
    if (turn.prefixLength > (parent ? lengthOf(parent) : 0))
      throw invalid(turn, "keeps more ids than its parent has");
    if (parent && turn.prefixLength <= parent.contextLength)
      throw invalid(turn, "keeps no part of its parent's reply");
    if (turn.keptMessages > 0 && turn.keptMessages !== (parent?.messageCount ?? -1) + 1)
      throw invalid(turn, "keeps other messages than its parent has");
    const suffix = unpackIds(turn.suffixIds);
    const sampled = unpackIds(turn.sampledIds);
    const added = new Int32Array(suffix.length + sampled.length);
    added.set(suffix);
    added.set(sampled, suffix.length);
    const contextLength = turn.prefixLength + suffix.length;
    const messageCount = turn.keptMessages + turn.messageDigests.length;
    const node = { turn, parent, added, contextLength, messageCount };
    this.nodes.set(turn.turn, node);
    this.ordered.push(turn);
    push(this.byHistory, keyOf(turn.historyDigest), node);
    push(this.byBody, keyOf(turn.bodyDigest), turn);
    this.calls.captured(turn);
  }

  /** The ids a turn was sampled under (T1). */
  contextOf(turn: string): Int32Array {
    const node = this.nodeOf(turn);
    return pathIds(node, node.contextLength);
  }

  contextLengthOf(turn: string): number {
    return this.nodeOf(turn).contextLength;
  }

  /** Context and sampled ids of a turn. */
  idsOf(turn: string): Int32Array {
    const node = this.nodeOf(turn);
    return pathIds(node, lengthOf(node));
  }

  /** The first `length` ids of a turn's context and reply, with `room` more behind them. */
  keptIds(turn: string, length: number, room: number): Int32Array {
    return pathIds(this.nodeOf(turn), length, room);
  }

  /** One id of a turn's context and reply; undefined beyond them. */
  idAt(turn: string, at: number): number | undefined {
    let node = this.nodeOf(turn);
    while (node.parent && at < node.turn.prefixLength) node = node.parent;
    return node.added[at - node.turn.prefixLength];
  }

  /** Turns whose request had the same normalised body, of the same caller, oldest first (C6). */
  sameBody(request: RequestDigests): readonly Turn[] {
    return this.byBody.get(keyOf(request.body)) ?? [];
  }

  /**
   * What a request extends (T2). At equal depth whole replies stand before partly adopted ones, then delivered
   * before undecided before abandoned, then the latest; the latest is always one turn, because a session
   * numbers its turns.
   */
  extension(request: RequestDigests, search: ExtensionSearch): Extension | undefined {
    return this.deepest(request, {
      ...search,
      isCandidate: (turn) => equalBytes(turn.toolsDigest, request.tools) && search.isCandidate(turn),
    });
  }

  /** Like `extension`, whatever tools a turn was offered. */
  extensionWithOtherTools(request: RequestDigests, search: ExtensionSearch): Extension | undefined {
    return this.deepest(request, search);
  }

  private deepest({ messages, history }: RequestDigests, search: ExtensionSearch): Extension | undefined {
    for (let at = messages.length - 1; at > 0; at--) {
      if (messages[at]!.role !== "assistant") continue;
      const found = (this.byHistory.get(keyOf(history.before(at))) ?? []).flatMap((node) => {
        if (node.messageCount !== at || !search.isCandidate(node.turn)) return [];
        const adopted = adoptedReply(node.turn, messages[at]!) ?? beginning(node.turn, at, search);
        if (!adopted || !matchesHistory(node, messages)) return [];
        return [{ node, adopted }];
      });
      const [best] = found.sort((a, b) => preference(a, b, search.deliveryOf));
      if (best) return extensionOf(best.node, best.adopted);
    }
    return undefined;
  }

  private nodeOf(turn: string): Node {
    const node = this.nodes.get(turn);
    if (node) return node;
    throw new MortiseError({ code: "MORTISE_CAPTURE_INVALID", message: `Turn ${turn} is not recorded.` });
  }
}

interface Match {
  readonly node: Node;
  readonly adopted: AdoptedReply;
}

function extensionOf(node: Node, { isPartial, tokens }: AdoptedReply): Extension {
  const isKept = tokens !== undefined;
  return {
    turn: node.turn,
    prefixLength: isKept ? node.contextLength + tokens : 0,
    keptMessages: isKept ? node.messageCount + 1 : 0,
    isPartial,
  };
}

function beginning(turn: Turn, at: number, search: ExtensionSearch): AdoptedReply | undefined {
  if (search.deliveryOf(turn.turn) === Delivery.DELIVERED || !search.isBeginning(turn, at)) return undefined;
  return { isPartial: true, tokens: undefined };
}

/**
 * Whether the request repeats every message the turn was asked with. Replies of ancestors match by call id
 * or text, as the harness may respell them later; every other message must have the same digest.
 */
function matchesHistory(node: Node, messages: readonly DigestedMessage[]): boolean {
  for (let at = node, below: Node | undefined; ; below = at, at = at.parent!) {
    if (below && below.turn.keptMessages > 0 && !keepsAsMuch(at, below, messages)) return false;
    const offset = at.turn.keptMessages;
    const isRepeated = at.turn.messageDigests.every(
      (digest, own) =>
        equalBytes(digest, messages[offset + own]!.digest) || repeatsAncestor(at, offset + own, messages),
    );
    if (!isRepeated) return false;
    // A turn that keeps no messages of its parent holds the digests of all of them itself.
    if (!at.parent || offset === 0) return true;
  }
}

function repeatsAncestor(node: Node, message: number, messages: readonly DigestedMessage[]): boolean {
  for (let below = node; below.parent; below = below.parent)
    if (below.parent.messageCount === message) return keepsAsMuch(below.parent, below, messages);
  return false;
}

/** Whether the echo of `node`'s reply keeps as many of its ids as the turn below it does. */
function keepsAsMuch(node: Node, below: Node, messages: readonly DigestedMessage[]): boolean {
  const kept = below.turn.prefixLength - node.contextLength;
  return adoptedReply(node.turn, messages[node.messageCount]!)?.tokens === kept;
}

const DELIVERY_RANK: Record<Delivery, number> = {
  [Delivery.DELIVERED]: 0,
  [Delivery.UNDECIDED]: 1,
  [Delivery.UNSPECIFIED]: 1,
  [Delivery.ABANDONED]: 2,
};

function preference(a: Match, b: Match, deliveryOf: (turn: string) => Delivery): number {
  return (
    Number(a.adopted.isPartial) - Number(b.adopted.isPartial) ||
    DELIVERY_RANK[deliveryOf(a.node.turn.turn)] - DELIVERY_RANK[deliveryOf(b.node.turn.turn)] ||
    b.node.turn.index - a.node.turn.index
  );
}

function lengthOf({ turn, added }: Node): number {
  return turn.prefixLength + added.length;
}

/** The first `length` ids of a node's context and reply, and `room` for others. */
function pathIds(node: Node, length: number, room = 0): Int32Array {
  const ids = new Int32Array(length + room);
  let end = length;
  for (let at: Node | undefined = node; at && end > 0; at = at.parent) {
    const start = at.turn.prefixLength;
    if (start < end) ids.set(at.added.subarray(0, end - start), start);
    end = Math.min(end, start);
  }
  return ids;
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function invalid(turn: Turn, what: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_CAPTURE_INVALID",
    message: `Turn ${turn.turn} of trial ${turn.trial} ${what}.`,
    detail: { run: turn.run, trial: turn.trial, turn: turn.turn },
  });
}
