/**
 * Owns what a complete group is worth: admitted to training, or dropped whole with the reason, and what happens
 * to the tokens of each member (C5: every trial that ran for the group is a member). Does not publish.
 *
 * D1  Statistics and loss see valid members only: an infrastructure failure is neither a 0 nor a vote.
 * D2  Fewer than two valid members, or rewards equal within 1e-6, drop the group whole.
 * D3  A member that would be past the staleness bound at the step that will take the group is excluded. Which step that
 *     is follows from the group's place in the stream (run/publication-order.ts).
 */

import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  ExclusionReason,
  GroupDisposition,
  type GroupMemberSchema,
  type GroupRecordSchema,
  MemberDisposition,
} from "@mortise/contracts";
import { groupAdvantages } from "@mortise/objectives";
import type { Standing } from "../trial/standing.js";
import type { ClosedTrial } from "../trial/trial.js";
import type { Group } from "./group.js";

type MemberInit = MessageInitShape<typeof GroupMemberSchema>;
export type GroupInit = MessageInitShape<typeof GroupRecordSchema> & { readonly group: string };

export interface DecisionContext {
  readonly run: string;
  /** Current version. */
  readonly version: number;
  /** The version on top of which the group would be trained; never below the current one. */
  readonly consumer: number;
  readonly maxStaleness: number;
  /** The run ended before the group was complete. */
  readonly hasEnded: boolean;
}

export interface Decision {
  readonly record: GroupInit;
  readonly isAdmitted: boolean;
  /** Lowest version among members that would be trained. */
  readonly lowestVersion?: number;
  readonly trials: readonly string[];
}

const EXCLUSIONS: Readonly<Record<Exclude<Standing, "valid">, ExclusionReason>> = {
  infra: ExclusionReason.INFRA,
  task: ExclusionReason.TASK,
  tamper: ExclusionReason.TAMPER,
  cancelled: ExclusionReason.CANCELLED,
  stale: ExclusionReason.STALE,
};

/** Decides a group whose places are settled, or whose run has ended. */
export function decide(group: Group, context: DecisionContext): Decision {
  const ran = group.places.flatMap((place, index) => place.history.map((trial) => ({ trial, index })));
  const exclusions = ran.map(({ trial }) => exclusionOf(trial, context));
  const drop = dropReason(
    ran.map(({ trial }) => trial),
    exclusions,
    context,
  );
  const members = ran.map(({ trial, index }, i) => memberOf(trial, index, exclusions[i] ?? drop));
  const kept = ran.filter((_, i) => exclusions[i] === undefined).map(({ trial }) => trial);
  const lowest = lowestVersion(kept);
  const isAdmitted = drop === undefined;
  return {
    record: {
      run: context.run,
      group: group.id,
      task: group.places[0]!.task,
      epoch: group.epoch,
      ordinal: BigInt(group.ordinal),
      disposition: isAdmitted ? GroupDisposition.ADMITTED : GroupDisposition.DROPPED,
      dropReason: drop ?? ExclusionReason.UNSPECIFIED,
      members,
      decidedVersion: BigInt(context.version),
    },
    isAdmitted,
    ...(isAdmitted && lowest !== undefined ? { lowestVersion: lowest } : {}),
    trials: ran.map(({ trial }) => trial.id),
  };
}

function exclusionOf(trial: ClosedTrial, context: DecisionContext): ExclusionReason | undefined {
  if (trial.standing !== "valid") return EXCLUSIONS[trial.standing];
  const lowest = trial.lowestVersion;
  const isPast = lowest !== undefined && context.consumer - Number(lowest) > context.maxStaleness;
  return isPast ? ExclusionReason.STALE : undefined; // D3
}

function dropReason(
  trials: readonly ClosedTrial[],
  exclusions: readonly (ExclusionReason | undefined)[],
  context: DecisionContext,
): ExclusionReason | undefined {
  if (context.hasEnded) return ExclusionReason.RUN_ENDED;
  const votes = trials.map((trial, i) => ({
    reward: trial.reward ?? Number.NaN,
    isValid: exclusions[i] === undefined,
  }));
  const { dropped } = groupAdvantages(votes, { estimator: "drgrpo" }); // D1, D2
  if (dropped === "zero-variance") return ExclusionReason.ZERO_VARIANCE;
  if (dropped === null) return undefined;
  return exclusions.includes(ExclusionReason.STALE) ? ExclusionReason.STALE : ExclusionReason.TOO_FEW_VALID;
}

function memberOf(trial: ClosedTrial, index: number, exclusion: ExclusionReason | undefined): MemberInit {
  return {
    trial: trial.id,
    slotInGroup: index,
    retry: trial.retry,
    disposition: exclusion === undefined ? MemberDisposition.TRAIN : MemberDisposition.EXCLUDED,
    exclusion: exclusion ?? ExclusionReason.UNSPECIFIED,
    termination: trial.termination,
    outcome: trial.outcome,
    ...(trial.reward === undefined ? {} : { reward: trial.reward }),
    sampledTokens: trial.sampledTokens,
    ...(trial.lowestVersion === undefined ? {} : { lowestVersion: trial.lowestVersion }),
    ...(trial.highestVersion === undefined ? {} : { highestVersion: trial.highestVersion }),
    turnSequences: [...trial.turnSequences],
    sealSequence: trial.sealSequence,
  };
}

function lowestVersion(trials: readonly ClosedTrial[]): number | undefined {
  const versions = trials.flatMap(({ lowestVersion }) =>
    lowestVersion === undefined ? [] : [Number(lowestVersion)],
  );
  return versions.length === 0 ? undefined : Math.min(...versions);
}
