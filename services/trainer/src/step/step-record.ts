/**
 * Owns the record of a step: what was consumed, what came of it, and the numbers a reader watches.
 * Does not own the ledger, which is folded when the record is published.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ConsistencySchema,
  ExclusionReason,
  type ScalarSchema,
  type StalenessSummarySchema,
  type StepRecord,
  StepRecordSchema,
} from "@mortise/contracts";
import {
  type Alarm,
  alarms,
  type Consistency,
  mean,
  partialGroups,
  type Staleness,
} from "@mortise/objectives";
import type { StepResult } from "../compute/messages.js";
import type { BatchGroup } from "./form-batch.js";
import type { StepPlan } from "./plan-step.js";

export interface StepFacts {
  readonly run: string;
  readonly step: number;
  readonly batch: readonly BatchGroup[];
  readonly plan: StepPlan;
  readonly result: StepResult;
  readonly staleBound: number;
  /** Mean turns per trial of earlier steps, oldest first. */
  readonly earlierTurns: readonly number[];
  /** Engines that had acknowledged the version the step started from. */
  readonly enginesCurrent: number;
  readonly computeCpuMs: number;
  readonly wallMs: number;
  readonly fence: number;
  readonly atMs: number;
}

export const MEAN_TURNS = "rollout/all/turns/mean";

/** The record without its ledger, and the alarms it raises. */
export function stepRecord(facts: StepFacts): { record: StepRecord; raised: readonly Alarm[] } {
  const { plan, result } = facts;
  const turns = mean(plan.turns);
  const raised = alarms({
    pearsonProbability: result.consistency.pearsonProbability,
    kl1: result.consistency.kl1,
    essFraction: result.consistency.essFraction,
    meanTurns: turns === null ? [] : [...facts.earlierTurns, turns],
    groups: plan.outcomes,
    infraShare: infraShare(facts.batch),
  });
  const record = create(StepRecordSchema, {
    run: facts.run,
    step: BigInt(facts.step),
    version: BigInt(facts.step),
    groups: [...plan.consumedGroups],
    trials: [...plan.uses],
    staleGroups: [...plan.staleGroups],
    consistency: {
      ...consistencyMessage(result.consistency),
      independentTokens: BigInt(result.independent.nTokens),
      ...present("independentMaxAbsDelta", result.independent.maxAbsDeltaLogp),
    },
    drift: consistencyMessage(result.drift),
    staleness: stalenessMessage(plan.staleness, facts.staleBound),
    ...present("meanReward", mean(plan.rewards)),
    loss: result.loss ?? 0,
    gradientNorm: result.gradientNorm ?? 0,
    scalars: [
      ...scalars(facts, turns),
      ...raised.map((alarm) => scalar(`alarm/${alarm.level}/${alarm.name}/value`, alarm.value)),
    ],
    computeCpuMs: facts.computeCpuMs,
    wallMs: facts.wallMs,
    fence: BigInt(facts.fence),
    atMs: BigInt(facts.atMs),
  });
  return { record, raised };
}

function scalars({ batch, plan, result, enginesCurrent }: StepFacts, turns: number | null) {
  const count = (fate: BatchGroup["fate"]) => batch.filter((group) => group.fate === fate).length;
  return [
    scalar("train/all/loss/mean", result.loss),
    scalar("train/all/policyLoss/mean", result.policyLoss),
    scalar("train/all/kl/mean", result.kl),
    scalar("train/all/entropy/mean", result.entropy),
    scalar("train/all/clipFraction/mean", result.clipFraction),
    scalar("train/all/gradientNorm/mean", result.gradientNorm),
    scalar("train/all/learningRate/last", result.learningRate),
    scalar("train/all/updates/count", result.updates),
    scalar("train/all/missingLogProbabilities/count", result.missingLogProbabilities),
    scalar("groups/admitted/decided/count", count("admitted")),
    scalar("groups/dropped/decided/count", count("dropped")),
    scalar("groups/stale/decided/count", plan.staleGroups.length),
    scalar("groups/partial/decided/count", partialGroups(plan.outcomes)),
    scalar("trials/trained/tokens/mean", mean(plan.trials.map((trial) => trial.trainedTokens))),
    scalar("trials/trained/used/count", plan.trials.length),
    scalar(MEAN_TURNS, turns),
    scalar("weights/all/engines/count", enginesCurrent),
  ];
}

/** Members lost to infrastructure over all members of the batch; 0 for an empty batch. */
function infraShare(batch: readonly BatchGroup[]): number {
  const members = batch.flatMap((group) => group.record.members);
  const lost = members.filter((member) => member.exclusion === ExclusionReason.INFRA).length;
  return members.length === 0 ? 0 : lost / members.length;
}

function consistencyMessage(measured: Consistency): MessageInitShape<typeof ConsistencySchema> {
  return {
    tokens: BigInt(measured.nTokens),
    missing: BigInt(measured.nMissing),
    ...present("pearsonProbability", measured.pearsonProbability),
    ...present("pearsonLogProbability", measured.pearsonLogp),
    ...present("meanAbsDelta", measured.meanAbsDeltaLogp),
    ...present("p99AbsDelta", measured.p99AbsDeltaLogp),
    ...present("maxAbsDelta", measured.maxAbsDeltaLogp),
    ...present("k3", measured.kl3),
    ...present("essFraction", measured.essFraction),
  };
}

function stalenessMessage(
  values: readonly Staleness[],
  bound: number,
): MessageInitShape<typeof StalenessSummarySchema> {
  const average = (of: (one: Staleness) => number | null) => mean(values.map((one) => of(one) ?? 0)) ?? 0;
  return {
    bound,
    max: Math.max(0, ...values.map((one) => one.total)),
    mean: average((one) => one.total),
    meanInFlight: average((one) => one.inFlight),
    meanInQueue: average((one) => one.inQueue),
  };
}

function scalar(name: string, value: number | null): MessageInitShape<typeof ScalarSchema> {
  return { name, ...present("value", value) };
}

/** An undefined value is an absent field, never 0 (C10). */
function present<K extends string>(key: K, value: number | null): Partial<Record<K, number>> {
  return value === null ? {} : ({ [key]: value } as Record<K, number>);
}
