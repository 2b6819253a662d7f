/**
 * Owns the run an evaluation is: its protocol and what it measures, as the configuration of a run without a trainer.
 * What is not in the protocol does not change what an attempt is worth: how many go at once, and how long is waited for
 * images and sandboxes.
 */
import { crossChecks, type EvaluationProtocol, MortiseError, RunConfig } from "@mortise/contracts";
import { parseStrict } from "@mortise/kernel";
import type { RunEngine } from "../site/init/engine.js";

/** Of the index that is written for the run; all it attempts are in it. */
export const SPLIT = "attempted";

/** The first trial waits for images and the harness's runtime. */
const SETUP_TIMEOUT_MS = 1_800_000;
const QUEUE_TIMEOUT_MS = 1_800_000;

export interface EvaluationFacts {
  readonly runId: string;
  readonly protocol: EvaluationProtocol;
  readonly checkpoint: string;
  readonly engine: RunEngine;
  readonly harness: string;
  /** Directory of the index of what is attempted. */
  readonly index: string;
  readonly nTasks: number;
  /** Agents at once. */
  readonly concurrency: number;
}

/** @throws MORTISE_CONFIG_INVALID for a protocol that makes no run */
export function evaluationRun(facts: EvaluationFacts): RunConfig {
  const { protocol, concurrency } = facts;
  const { sampling, limits, prompt } = protocol;
  const { cpus, memoryBytes, pids, diskBytes, ...budget } = limits;
  const run = parseStrict(
    RunConfig,
    {
      run: { id: facts.runId, seed: protocol.seed, mode: "evaluation" },
      policy: {
        checkpoint: facts.checkpoint,
        history: prompt.history,
        lateSystem: prompt.lateSystem,
        thinking: prompt.thinking,
      },
      engine: facts.engine,
      tasks: { train: SPLIT, evaluate: SPLIT, index: facts.index },
      rollout: {
        harness: facts.harness,
        slots: concurrency,
        warm: concurrency,
        ...sampling,
        ...budget,
        limits: { cpus, memoryBytes, pids, diskBytes },
        setupTimeoutMs: SETUP_TIMEOUT_MS,
        queueTimeoutMs: QUEUE_TIMEOUT_MS,
        instruction: prompt.instruction,
        network: protocol.network,
        shownTests: protocol.shownTests,
        maxRetries: protocol.maxRetries,
      },
      trainer: { steps: 0 },
      evaluation: { attempts: facts.nTasks * protocol.attempts, protocol },
    },
    { source: `protocol ${protocol.name}` },
  );
  const [problem] = crossChecks(run);
  if (problem === undefined) return run;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `protocol ${protocol.name}: ${problem.field} ${problem.reason}.`,
    detail: { field: problem.field },
  });
}
