/**
 * Owns one arm of the pool's benchmark: so many trials through a manager, under the scheduler's rule for slots (S1 and
 * S2 of services/scheduler/src/run/slots.ts). Without a pool a trial holds its slot from its launch on.
 */
import { type SandboxReport, Stage } from "@mortise/contracts";
import type { ScriptedModel, Served } from "./model.js";
import type { PoolStand } from "./stand.js";

export interface ArmOptions {
  readonly name: string;
  readonly trials: number;
  readonly slots: number;
  /** Prepared trials that may wait for a slot; 0 is without a pool. */
  readonly warm: number;
}

export interface ArmResult extends Served {
  readonly warm: number;
  readonly wallMs: number;
  readonly failed: number;
}

export async function runArm(
  stand: PoolStand,
  model: ScriptedModel,
  options: ArmOptions,
): Promise<ArmResult> {
  const { name, trials, slots, warm } = options;
  const waiting: SandboxReport[] = [];
  const finished = Promise.withResolvers<void>();
  let [launched, running, ended, failed] = [0, 0, 0, 0];
  const advance = () => {
    while (running < slots && waiting.length > 0) {
      const { trial, lease } = waiting.shift()!;
      running++;
      stand.startAgent(trial, lease).catch(finished.reject);
    }
    while (launched < trials && launched - ended < slots + warm) {
      const task = stand.tasks[launched % stand.tasks.length]!;
      stand.launch(`${name}-${launched++}`, task, model.address).catch(finished.reject);
    }
    if (ended === trials) finished.resolve();
  };
  const stop = stand.onReport((report) => {
    if (!report.trial.startsWith(`${name}-`)) return;
    if (report.fact.case === "prepared") waiting.push(report);
    else {
      ended++;
      if (report.fact.case === "failed") failed++;
      const hadSlot = report.stages.some(({ stage }) => stage === Stage.AGENT);
      if (hadSlot) running--;
    }
    advance();
  });
  model.reset();
  const since = performance.now();
  advance();
  await finished.promise;
  stop();
  return { warm, wallMs: performance.now() - since, failed, ...model.served() };
}
