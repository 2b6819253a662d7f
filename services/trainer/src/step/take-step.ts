/**
 * Owns one step from a formed batch to a new version that is computed and not yet committed.
 * Reads captures, asks the compute thread; writes nothing.
 */
import type { RunConfig } from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import type { Alarm, Objective } from "@mortise/objectives";
import type { NewVersion } from "../commit/committer.js";
import type { Compute } from "../compute/compute.js";
import type { BatchGroup } from "./form-batch.js";
import { loadGroups } from "./load-groups.js";
import { planStep } from "./plan-step.js";
import { stepRecord } from "./step-record.js";
import { stepTask } from "./step-task.js";

export interface TakeStepOptions {
  readonly bus: Bus;
  readonly config: RunConfig;
  readonly objective: Objective;
  readonly compute: Compute;
  readonly step: number;
  readonly batch: readonly BatchGroup[];
  /** Optimiser updates before this step. */
  readonly updates: number;
  readonly earlierTurns: readonly number[];
  readonly enginesCurrent: number;
  readonly fence: number;
}

export interface TakenStep {
  readonly next: NewVersion;
  readonly raised: readonly Alarm[];
}

export async function takeStep(options: TakeStepOptions): Promise<TakenStep> {
  const { bus, config, objective, compute, step, batch } = options;
  const startedAt = performance.now();
  const staleBound = config.async.maxStaleness;
  const plan = planStep(await loadGroups(bus, batch), { step, staleBound, advantage: objective.advantage });
  const task = stepTask(plan, { config, objective, version: step - 1, updates: options.updates });
  const cpuBefore = compute.cpuMs;
  const { weights, optimizer, result } = await compute.ask<"step">({ kind: "step", task });
  const { record, raised } = stepRecord({
    run: config.run.id,
    step,
    batch,
    plan,
    result,
    staleBound,
    earlierTurns: options.earlierTurns,
    enginesCurrent: options.enginesCurrent,
    computeCpuMs: compute.cpuMs - cpuBefore,
    wallMs: performance.now() - startedAt,
    fence: options.fence,
    atMs: Date.now(),
  });
  const next: NewVersion = {
    version: step,
    weights,
    optimizer,
    cursor: batch.at(-1)!.sequence,
    updates: options.updates + result.updates,
    groups: batch.map((group) => group.record.group),
    record,
  };
  return { next, raised };
}
