/**
 * Owns reading everything a run has recorded, once, from the streams: for `status` and for the summary.
 * Does not judge it (summary.ts) and does not follow it (progress.ts).
 */

import type { DescMessage } from "@bufbuild/protobuf";
import {
  CaptureRecordSchema,
  type EvaluationRecord,
  filter,
  type GroupRecord,
  GroupRecordSchema,
  MetricsRecordSchema,
  type PhaseRecord,
  type SessionSealed,
  type StepRecord,
  TrialState,
  type TrialTransition,
  TrialTransitionSchema,
} from "@mortise/contracts";
import type { Bus, FollowOptions } from "@mortise/kernel";
import { type LostTrials, lostTrials } from "./lost-trials.js";

export interface RunRecords {
  readonly seals: readonly SessionSealed[];
  readonly groups: readonly GroupRecord[];
  /** In order of step. */
  readonly steps: readonly StepRecord[];
  /** By name: "before", "after". */
  readonly evaluations: ReadonlyMap<string, EvaluationRecord>;
  readonly phases: readonly PhaseRecord[];
  /** Trials that have ended, of training and evaluation, retries included. */
  readonly endedTrials: number;
  /** Those of them without a verdict that counts, by cause. */
  readonly lost: readonly LostTrials[];
  /** Trials recorded as ended more than once: always empty, or something was counted twice. */
  readonly endedTwice: readonly string[];
}

export async function readRunRecords(bus: Bus, run: string): Promise<RunRecords> {
  const seals = new Map<string, SessionSealed>();
  const groups = new Map<string, GroupRecord>();
  const steps = new Map<bigint, StepRecord>();
  const evaluations = new Map<string, EvaluationRecord>();
  const phases: PhaseRecord[] = [];
  const closed = new Map<string, number>();
  const lastOf = new Map<string, TrialTransition>();

  await readAll(bus, "CAPTURES", filter.captures(run), CaptureRecordSchema, ({ record }) => {
    if (record.case === "sealed") seals.set(record.value.trial, record.value);
  });
  await readAll(bus, "GROUPS", filter.groups(run), GroupRecordSchema, (group) => {
    groups.set(group.group, group);
  });
  await readAll(bus, "TRIALS", filter.trialStates(run), TrialTransitionSchema, (transition) => {
    const { trial, state } = transition;
    if (state !== TrialState.CLOSED) return;
    closed.set(trial, (closed.get(trial) ?? 0) + 1);
    lastOf.set(trial, transition);
  });
  await readAll(bus, "METRICS", filter.metrics(run), MetricsRecordSchema, ({ record }) => {
    if (record.case === "step") steps.set(record.value.step, record.value);
    if (record.case === "evaluation") evaluations.set(record.value.name, record.value);
    if (record.case === "phase") phases.push(record.value);
  });

  return {
    seals: [...seals.values()],
    groups: [...groups.values()],
    steps: [...steps.values()].sort((a, b) => Number(a.step - b.step)),
    evaluations,
    phases,
    endedTrials: closed.size,
    lost: lostTrials(lastOf.values()),
    endedTwice: [...closed].filter(([, times]) => times > 1).map(([trial]) => trial),
  };
}

/** Every message a stream holds now under these subjects, in stream order. */
export async function readAll<D extends DescMessage>(
  bus: Bus,
  stream: string,
  subjects: string,
  schema: D,
  onMessage: FollowOptions<D>["onMessage"],
): Promise<void> {
  const following = await bus.follow({ stream, filters: [subjects], from: "first", schema, onMessage });
  await following.caughtUp;
  await following.stop();
}
