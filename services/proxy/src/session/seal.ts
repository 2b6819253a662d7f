/**
 * Owns the seal of a trial as a pure function of its turns: also after a restart, when only the journal is
 * left. Does not publish it (session.ts, sessions.ts).
 */
import { create } from "@bufbuild/protobuf";
import { type Delivery, type SessionSealed, SessionSealedSchema, type Turn } from "@mortise/contracts";

export interface Seal {
  readonly record: SessionSealed;
  /** Stream sequence of the seal on CAPTURES. */
  readonly sequence: number;
}

export interface SealFacts {
  readonly turns: readonly Turn[];
  /** Stream sequence of each turn. */
  readonly sequences: ReadonlyMap<string, number>;
  readonly deliveryOf: (turn: string) => Delivery;
  readonly lastSequence: number;
  readonly budgetReached: string;
  readonly failure: string;
}

export function sealRecord(
  who: { run: string; trial: string; isEvaluation: boolean },
  facts: SealFacts,
): SessionSealed {
  const versions = facts.turns.flatMap((turn) => turn.spans.map((span) => span.policyVersion));
  versions.sort((a, b) => (a < b ? -1 : 1));
  const turns = facts.turns.map((turn) => ({
    turn: turn.turn,
    sequence: BigInt(facts.sequences.get(turn.turn)!),
    sampledTokens: turn.sampledIds.byteLength / 4,
    delivery: facts.deliveryOf(turn.turn),
  }));
  return create(SessionSealedSchema, {
    run: who.run,
    trial: who.trial,
    session: who.trial,
    evaluation: who.isEvaluation,
    sampledTokens: BigInt(turns.reduce((sum, turn) => sum + turn.sampledTokens, 0)),
    lastSequence: BigInt(facts.lastSequence),
    turns,
    budgetReached: facts.budgetReached,
    failure: facts.failure,
    ...(versions.length > 0 && { lowestVersion: versions[0]!, highestVersion: versions.at(-1)! }),
  });
}
