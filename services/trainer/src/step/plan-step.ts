/**
 * Owns what a batch means for training: each trial's advantage, rows and token accounting, computed once per
 * step. Pure: the same batch and captures give the same plan. Does not read streams or compute gradients.
 *
 * P1  Every sampled token of a trial in an admitted group is trained, baseline-only or excluded with a reason (C5).
 * P2  The staleness bound is checked again on the versions of the tokens themselves, not on what the group
 *     record says of them; a group past the bound is refused whole (DESIGN §6).
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AssembledTrial, Sequence } from "@mortise/capture";
import {
  type ExcludedTokensSchema,
  ExclusionReason,
  type GroupMember,
  type GroupRecord,
  MemberDisposition,
  type TrialUseSchema,
} from "@mortise/contracts";
import {
  type AdvantageOptions,
  type DropReason,
  type GroupOutcome,
  groupAdvantages,
  isTooStale,
  type Staleness,
  staleness,
} from "@mortise/objectives";
import type { BatchGroup } from "./form-batch.js";

/** A group with the assembled trials of its members (those that have a seal). */
export interface LoadedGroup {
  readonly group: BatchGroup;
  readonly trials: ReadonlyMap<string, LoadedTrial>;
}

export interface LoadedTrial {
  /** Absent when the captured records could not be used; `fault` then says why. */
  readonly assembled?: AssembledTrial;
  readonly fault?: string;
  readonly turns: number;
}

/** A trial whose tokens are in the loss. */
export interface PlannedTrial {
  readonly trial: string;
  readonly advantage: number;
  readonly trainedTokens: number;
  readonly sequences: readonly Sequence[];
}

export interface StepPlan {
  readonly trials: readonly PlannedTrial[];
  readonly uses: readonly MessageInitShape<typeof TrialUseSchema>[];
  /** Groups whose fate this step decides, refused ones apart. */
  readonly consumedGroups: readonly string[];
  readonly staleGroups: readonly string[];
  /** One per trained trial. */
  readonly staleness: readonly Staleness[];
  /** Rewards of all valid members of admitted groups. */
  readonly rewards: readonly number[];
  readonly outcomes: readonly GroupOutcome[];
  /** Turns of every member with a seal. */
  readonly turns: readonly number[];
}

/** A plan while it is being made. */
type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer U)[] ? U[] : T[K] };

export interface PlanRules {
  readonly step: number;
  readonly staleBound: number;
  readonly advantage: AdvantageOptions;
}

const DROP_REASON: Record<DropReason, ExclusionReason> = {
  "too-few-valid": ExclusionReason.TOO_FEW_VALID,
  "zero-variance": ExclusionReason.ZERO_VARIANCE,
};

/** The plan of one step over its loaded groups, in stream order. */
export function planStep(groups: readonly LoadedGroup[], rules: PlanRules): StepPlan {
  const plan: Mutable<StepPlan> = {
    trials: [],
    uses: [],
    consumedGroups: [],
    staleGroups: [],
    staleness: [],
    rewards: [],
    outcomes: [],
    turns: [],
  };
  for (const loaded of groups) {
    const { record, fate } = loaded.group;
    plan.turns.push(...[...loaded.trials.values()].map((trial) => trial.turns));
    if (fate === "stale" || (fate === "admitted" && holdsStaleTokens(loaded, rules))) {
      plan.staleGroups.push(record.group); // P2
      continue;
    }
    plan.consumedGroups.push(record.group);
    if (fate === "admitted") planGroup(loaded, rules, plan);
  }
  return plan;
}

function planGroup({ group, trials }: LoadedGroup, rules: PlanRules, plan: Mutable<StepPlan>): void {
  const members = group.record.members;
  const valid = members.map((member) => isValid(member, trials.get(member.trial)));
  const result = groupAdvantages(
    members.map((member, i) => ({ reward: member.reward ?? 0, isValid: valid[i]! })),
    rules.advantage,
  );
  const rewards = members.filter((_, i) => valid[i]).map((member) => member.reward!);
  plan.rewards.push(...rewards);
  plan.outcomes.push({ nSolved: rewards.filter((reward) => reward > 0).length, nValid: rewards.length });
  for (const [i, member] of members.entries()) {
    if (member.disposition === MemberDisposition.EXCLUDED) continue;
    const trial = trials.get(member.trial)?.assembled ?? withoutTokens(group.record, member);
    const reason = refusal(valid[i]!, result.dropped);
    // An imitated success is in the loss; a failure beside it only counts in the statistics.
    const isImitated = rules.advantage.estimator !== "success" || result.advantages[i] !== 0;
    const isTrained = reason === null && member.disposition === MemberDisposition.TRAIN && isImitated;
    plan.uses.push(useOf(member, trial, reason, isTrained)); // P1
    if (!isTrained || trial.lowestVersion === undefined) continue;
    plan.trials.push({
      trial: member.trial,
      advantage: result.advantages[i]!,
      trainedTokens: trial.trainableTokens,
      sequences: trial.sequences,
    });
    plan.staleness.push(
      staleness({
        step: rules.step,
        lowestVersion: trial.lowestVersion,
        endVersion: Number(group.record.decidedVersion),
      }),
    );
  }
}

/** A member without usable tokens still has its place in the accounting. */
function withoutTokens(record: GroupRecord, member: GroupMember): AssembledTrial {
  const tokens = Number(member.sampledTokens);
  return {
    run: record.run,
    trial: member.trial,
    sequences: [],
    sampledTokens: tokens,
    trainableTokens: 0,
    exclusions: new Map(tokens > 0 ? [[ExclusionReason.INFRA, tokens]] : []),
    lowestVersion: undefined,
    highestVersion: undefined,
  };
}

/** A member whose reward counts: the termination policy kept it, and there is a reward to count. */
function isValid(member: GroupMember, trial: LoadedTrial | undefined): boolean {
  if (trial?.fault !== undefined) return false;
  return member.disposition !== MemberDisposition.EXCLUDED && member.reward !== undefined;
}

function refusal(isValidMember: boolean, dropped: DropReason | null): ExclusionReason | null {
  if (!isValidMember) return ExclusionReason.INFRA;
  return dropped === null ? null : DROP_REASON[dropped];
}

function useOf(
  member: GroupMember,
  trial: AssembledTrial,
  reason: ExclusionReason | null,
  isTrained: boolean,
): MessageInitShape<typeof TrialUseSchema> {
  const excluded = new Map(trial.exclusions);
  if (reason !== null) excluded.set(reason, (excluded.get(reason) ?? 0) + trial.trainableTokens);
  const isBaseline = reason === null && !isTrained;
  return {
    trial: member.trial,
    trainedTokens: BigInt(isTrained ? trial.trainableTokens : 0),
    baselineOnlyTokens: BigInt(isBaseline ? trial.trainableTokens : 0),
    excluded: [...excluded]
      .filter(([, tokens]) => tokens > 0)
      .sort(([a], [b]) => a - b)
      .map(
        ([why, tokens]): MessageInitShape<typeof ExcludedTokensSchema> => ({
          reason: why,
          tokens: BigInt(tokens),
        }),
      ),
  };
}

function holdsStaleTokens({ group, trials }: LoadedGroup, rules: PlanRules): boolean {
  return group.record.members.some((member) => {
    const lowest = trials.get(member.trial)?.assembled?.lowestVersion;
    if (member.disposition !== MemberDisposition.TRAIN || lowest === undefined) return false;
    return isTooStale(rules.step, lowest, rules.staleBound);
  });
}
