/** Builds captured trials and decided groups as proxy and scheduler publish them. */
import { create } from "@bufbuild/protobuf";
import { packIds, packLogProbabilities } from "@mortise/capture";
import {
  Delivery,
  ExclusionReason,
  FinishReason,
  GroupDisposition,
  type GroupMember,
  GroupMemberSchema,
  type GroupRecord,
  GroupRecordSchema,
  MemberDisposition,
  Outcome,
  type SessionSealed,
  SessionSealedSchema,
  TerminationReason,
  type Turn,
  TurnRelation,
  TurnRole,
  TurnSchema,
} from "@mortise/contracts";

export const RUN = "r1";

export interface TrialSketch {
  readonly trial: string;
  readonly reward?: number;
  readonly disposition?: MemberDisposition;
  readonly exclusion?: ExclusionReason;
  /** Version of each sampled token of the only turn. */
  readonly versions?: readonly number[];
  readonly ids?: readonly number[];
  readonly context?: readonly number[];
  readonly logProbabilities?: readonly number[];
}

export interface CapturedTrial {
  readonly turn: Turn;
  readonly seal: SessionSealed;
}

/** A trial of one turn. */
export function captured(sketch: TrialSketch, sequence = 1): CapturedTrial {
  const versions = sketch.versions ?? [0, 0, 0];
  const ids = sketch.ids ?? versions.map((_, i) => 10 + i);
  const turn = create(TurnSchema, {
    run: RUN,
    trial: sketch.trial,
    session: sketch.trial,
    thread: "h0",
    turn: `${sketch.trial}-0`,
    relation: TurnRelation.ROOT,
    role: TurnRole.TRAIN,
    suffixIds: packIds(sketch.context ?? [1, 2]),
    sampledIds: packIds(ids),
    logProbabilities: packLogProbabilities(sketch.logProbabilities ?? versions.map(() => -1)),
    spans: versions.map((version, start) => ({ start, length: 1, policyVersion: BigInt(version) })),
    finish: FinishReason.STOP,
  });
  const seal = create(SessionSealedSchema, {
    run: RUN,
    trial: sketch.trial,
    session: sketch.trial,
    sampledTokens: BigInt(ids.length),
    lastSequence: BigInt(sequence),
    turns: [
      {
        turn: turn.turn,
        sequence: BigInt(sequence),
        sampledTokens: ids.length,
        delivery: Delivery.DELIVERED,
      },
    ],
    lowestVersion: BigInt(Math.min(...versions)),
    highestVersion: BigInt(Math.max(...versions)),
  });
  return { turn, seal };
}

export function member(sketch: TrialSketch, slot: number, sequences = { turn: 1, seal: 2 }): GroupMember {
  const versions = sketch.versions ?? [0, 0, 0];
  return create(GroupMemberSchema, {
    trial: sketch.trial,
    slotInGroup: slot,
    disposition: sketch.disposition ?? MemberDisposition.TRAIN,
    exclusion: sketch.exclusion ?? ExclusionReason.UNSPECIFIED,
    termination: TerminationReason.COMPLETED,
    outcome: sketch.reward ? Outcome.RESOLVED : Outcome.UNRESOLVED,
    ...(sketch.reward === undefined ? {} : { reward: sketch.reward }),
    sampledTokens: BigInt((sketch.ids ?? versions).length),
    lowestVersion: BigInt(Math.min(...versions)),
    highestVersion: BigInt(Math.max(...versions)),
    turnSequences: [BigInt(sequences.turn)],
    sealSequence: BigInt(sequences.seal),
  });
}

export interface GroupSketch {
  readonly group: string;
  readonly members: readonly GroupMember[];
  readonly dropReason?: ExclusionReason;
  readonly decidedVersion?: number;
}

export function groupRecord(sketch: GroupSketch): GroupRecord {
  const isDropped = sketch.dropReason !== undefined;
  return create(GroupRecordSchema, {
    run: RUN,
    group: sketch.group,
    disposition: isDropped ? GroupDisposition.DROPPED : GroupDisposition.ADMITTED,
    dropReason: sketch.dropReason ?? ExclusionReason.UNSPECIFIED,
    members: [...sketch.members],
    decidedVersion: BigInt(sketch.decidedVersion ?? 0),
  });
}
