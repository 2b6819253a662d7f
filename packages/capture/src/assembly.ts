/**
 * Owns the way from a sealed trial to training rows. Does not batch, pad or weigh them (the trainer does).
 *
 * A1  Every sampled token is in exactly one of: masked 1 in one row, or counted under one exclusion (C5).
 * A2  A row is a path of the turn tree, so a token stands behind exactly the ids it was sampled under (C1).
 * A3  Where paths share a stretch, its tokens are trained in one of them and are context in the others.
 * A4  A log-probability the engine did not give is NaN, never 0 (C10).
 */
import {
  Delivery,
  ExclusionReason,
  MortiseError,
  type SessionSealed,
  type Turn,
  TurnRole,
} from "@mortise/contracts";
import { type Adoption, foldAdoption } from "./adoption.js";
import { unpackIds, unpackLogProbabilities } from "./packed.js";
import { TurnTree } from "./turn-tree.js";

/** One training row. All arrays have the length of `ids`. */
export interface Sequence {
  /** The last turn of the path. */
  readonly leaf: string;
  readonly ids: Int32Array;
  /** 1 where the token was sampled, is trainable and belongs to this row; 0 elsewhere. */
  readonly mask: Uint8Array;
  /** Log-probability under the distribution it was sampled from; NaN where missing or not sampled. */
  readonly logProbabilities: Float32Array;
  /** Policy version that sampled the token; −1 for context. */
  readonly versions: Int32Array;
}

export interface AssembledTrial {
  readonly run: string;
  readonly trial: string;
  readonly sequences: readonly Sequence[];
  readonly sampledTokens: number;
  readonly trainableTokens: number;
  /** Sampled tokens that are not trainable, by reason; only reasons that occur. */
  readonly exclusions: ReadonlyMap<ExclusionReason, number>;
  /** Versions among trainable tokens; undefined without any. */
  readonly lowestVersion: number | undefined;
  readonly highestVersion: number | undefined;
}

/**
 * Rows of one trial. `turns` may come in any order and repeated (redelivery); the seal says which belong.
 * @throws MortiseError MORTISE_CAPTURE_INVALID when turns and seal contradict each other.
 */
export function assembleTrial(turns: readonly Turn[], seal: SessionSealed): AssembledTrial {
  const ordered = sealedTurns(turns, seal);
  const tree = new TurnTree();
  for (const turn of ordered) tree.add(turn);
  const adoption = foldAdoption(ordered);
  const delivery = new Map(seal.turns.map((sealed) => [sealed.turn, sealed.delivery]));
  const sampled = ordered.map((turn) => sampledPart(turn, adoption, delivery.get(turn.turn)!));
  const exclusions = new Map<ExclusionReason, number>();
  for (const part of sampled)
    for (const [reason, tokens] of part.exclusions)
      if (tokens > 0) exclusions.set(reason, (exclusions.get(reason) ?? 0) + tokens);
  const parts = new Map(sampled.map((part) => [part.turn.turn, part]));
  const sequences = paths(ordered, adoption)
    .map((path) => rowOf(path, tree, parts))
    .filter((row) => row.mask.includes(1));
  return {
    run: seal.run,
    trial: seal.trial,
    sequences,
    sampledTokens: sum(sampled.map((part) => part.ids.length)),
    trainableTokens: sum(sampled.map((part) => part.trainable)),
    exclusions,
    ...versionRange(sequences),
  };
}

interface SampledPart {
  readonly turn: Turn;
  readonly ids: Int32Array;
  readonly logProbabilities: Float32Array;
  readonly versions: Int32Array;
  /** Leading sampled tokens that may be trained. */
  readonly trainable: number;
  readonly exclusions: readonly [ExclusionReason, number][];
}

function sealedTurns(turns: readonly Turn[], seal: SessionSealed): Turn[] {
  const byId = new Map(turns.filter((turn) => turn.trial === seal.trial).map((turn) => [turn.turn, turn]));
  const ordered = seal.turns.map((sealed) => {
    const turn = byId.get(sealed.turn);
    if (!turn) throw invalid(seal, `turn ${sealed.turn} is sealed but not given`);
    if (turn.sampledIds.byteLength !== sealed.sampledTokens * 4)
      throw invalid(seal, `turn ${sealed.turn} does not have the sealed number of tokens`);
    return turn;
  });
  if (byId.size !== ordered.length) throw invalid(seal, "a turn is not in the seal");
  return ordered.sort((a, b) => a.index - b.index);
}

function sampledPart(turn: Turn, adoption: Adoption, delivery: Delivery): SampledPart {
  const ids = unpackIds(turn.sampledIds);
  const trainable = trainableTokens(turn, ids.length, adoption, delivery);
  return {
    turn,
    ids,
    logProbabilities: logProbabilitiesOf(turn, ids.length),
    versions: versionsOf(turn, ids.length),
    trainable: trainable.tokens,
    exclusions: trainable.tokens < ids.length ? [[trainable.reason, ids.length - trainable.tokens]] : [],
  };
}

/** How many of a turn's `sampled` leading tokens may be trained, and why the rest, if any, may not. */
export function trainableTokens(
  turn: Turn,
  sampled: number,
  adoption: Adoption,
  delivery: Delivery,
): { readonly tokens: number; readonly reason: ExclusionReason } {
  if (turn.role !== TurnRole.TRAIN) return { tokens: 0, reason: ExclusionReason.ROLE };
  const adopted = adoption.adopted.get(turn.turn);
  if (adopted !== undefined) return { tokens: adopted, reason: ExclusionReason.NOT_ADOPTED };
  // Never echoed: a reply delivered to its end is a rejected leaf and trains; an abandoned one does not (C4, C6).
  const tokens = delivery === Delivery.ABANDONED ? 0 : sampled;
  return { tokens, reason: ExclusionReason.ABANDONED };
}

function logProbabilitiesOf(turn: Turn, sampled: number): Float32Array {
  const values = unpackLogProbabilities(turn.logProbabilities);
  if (values.length === 0) return new Float32Array(sampled).fill(Number.NaN);
  if (values.length !== sampled)
    throw invalid(turn, `turn ${turn.turn} has ${values.length} log-probabilities`);
  return values;
}

function versionsOf(turn: Turn, sampled: number): Int32Array {
  const versions = new Int32Array(sampled).fill(-1);
  let next = 0;
  for (const span of turn.spans) {
    if (span.start !== next || span.start + span.length > sampled)
      throw invalid(turn, `turn ${turn.turn} has spans that do not cover its tokens in order`);
    versions.fill(Number(span.policyVersion), span.start, span.start + span.length);
    next += span.length;
  }
  if (next !== sampled) throw invalid(turn, `turn ${turn.turn} has tokens without a policy version`);
  return versions;
}

/**
 * Paths from root to leaf. Each turn's tokens are owned by one path: the one through the child that adopts
 * most of it, the earliest among equals (A3).
 */
function paths(turns: readonly Turn[], adoption: Adoption): { turn: Turn; isOwned: boolean }[][] {
  const byId = new Map(turns.map((turn) => [turn.turn, turn]));
  const owner = new Map<string, string>();
  for (const [parent, children] of adoption.children)
    owner.set(parent, children.reduce((best, c) => (c.prefixLength > best.prefixLength ? c : best)).turn);
  const leaves = turns.filter((turn) => !adoption.children.has(turn.turn));
  return leaves.map((leaf) => {
    const path = [{ turn: leaf, isOwned: true }];
    for (let at = leaf, isOwned = true; at.parent !== ""; ) {
      isOwned = isOwned && owner.get(at.parent) === at.turn;
      at = byId.get(at.parent)!;
      path.unshift({ turn: at, isOwned });
    }
    return path;
  });
}

function rowOf(
  path: readonly { turn: Turn; isOwned: boolean }[],
  tree: TurnTree,
  parts: ReadonlyMap<string, SampledPart>,
): Sequence {
  const leaf = path.at(-1)!.turn.turn;
  const ids = tree.idsOf(leaf);
  const row = {
    leaf,
    ids,
    mask: new Uint8Array(ids.length),
    logProbabilities: new Float32Array(ids.length).fill(Number.NaN),
    versions: new Int32Array(ids.length).fill(-1),
  };
  path.forEach(({ turn, isOwned }, at) => {
    if (!isOwned) return;
    const part = parts.get(turn.turn)!;
    const start = tree.contextLengthOf(turn.turn);
    const kept = (path[at + 1]?.turn.prefixLength ?? ids.length) - start;
    row.mask.fill(1, start, start + Math.min(part.trainable, kept));
    row.logProbabilities.set(part.logProbabilities.subarray(0, kept), start);
    row.versions.set(part.versions.subarray(0, kept), start);
  });
  return row;
}

function versionRange(sequences: readonly Sequence[]) {
  let lowestVersion: number | undefined;
  let highestVersion: number | undefined;
  for (const { mask, versions } of sequences)
    for (let at = 0; at < mask.length; at++) {
      if (mask[at] === 0) continue;
      lowestVersion = Math.min(lowestVersion ?? Number.POSITIVE_INFINITY, versions[at]!);
      highestVersion = Math.max(highestVersion ?? -1, versions[at]!);
    }
  return { lowestVersion, highestVersion };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function invalid(where: { run: string; trial: string }, what: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_CAPTURE_INVALID",
    message: `Trial ${where.trial} of run ${where.run}: ${what}.`,
    detail: { run: where.run, trial: where.trial },
  });
}
