/**
 * Owns reading the streams of a run from their first message, once, until what was stored at the start has been
 * seen. Does not follow what comes later (see edge/facts.ts) and decides nothing.
 */
import {
  filter,
  type GroupRecord,
  GroupRecordSchema,
  MetricsRecordSchema,
  RunPhase,
  TrialTransitionSchema,
} from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import type { Recovered } from "./restore.js";
import { TrialLog } from "./trial-log.js";

export interface Replayed extends Recovered {
  readonly sequences: ReadonlyMap<string, number>;
  /** When the current phase began, epoch milliseconds; absent for a new run. */
  readonly phaseAtMs?: number;
}

/** Reads TRIALS (transitions), GROUPS and METRICS of the run. */
export async function replay(bus: Bus, run: string): Promise<Replayed> {
  const log = new TrialLog();
  const groups = new Map<string, GroupRecord>();
  const evaluations: string[] = [];
  let phase = RunPhase.UNSPECIFIED;
  let phaseAtMs: number | undefined;
  const readings = await Promise.all([
    bus.follow({
      stream: "TRIALS",
      filters: [filter.trialStates(run)],
      from: "first",
      schema: TrialTransitionSchema,
      onMessage: (transition, meta) => log.add(transition, meta.sequence),
    }),
    bus.follow({
      stream: "GROUPS",
      filters: [filter.groups(run)],
      from: "first",
      schema: GroupRecordSchema,
      onMessage: (record) => {
        if (!groups.has(record.group)) groups.set(record.group, record);
      },
    }),
    bus.follow({
      stream: "METRICS",
      filters: [filter.metrics(run)],
      from: "first",
      schema: MetricsRecordSchema,
      onMessage: ({ record }) => {
        if (record.case === "evaluation") evaluations.push(record.value.name);
        if (record.case !== "phase" || record.value.phase < phase) return;
        phase = record.value.phase;
        phaseAtMs = Number(record.value.atMs);
      },
    }),
  ]);
  await Promise.all(readings.map(({ caughtUp }) => caughtUp));
  await Promise.all(readings.map((reading) => reading.stop()));
  return {
    trials: log.trials,
    groups: [...groups.values()],
    evaluations,
    phase,
    sequences: log.sequences,
    ...(phaseAtMs === undefined ? {} : { phaseAtMs }),
  };
}
