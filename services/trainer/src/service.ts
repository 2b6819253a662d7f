/**
 * Owns the trainer as a service: configuration to parts, status over rpc, readiness, drain.
 * Does not own training itself (trainer.ts).
 */
import { MortiseError, TrainerService } from "@mortise/contracts";
import { implement, type Running, type ServiceContext, type ServiceDefinition } from "@mortise/kernel";
import type { OnPhase } from "./commit/phases.js";
import { type Backend, Compute } from "./compute/compute.js";
import type { WarmStartProgress } from "./compute/messages.js";
import { objectiveOfRun } from "./objective-of-run.js";
import { Trainer } from "./trainer.js";
import { TrainerMetrics } from "./trainer-metrics.js";

/** Of the 25 s a drain may take: a step under way is finished if it ends within this time. */
const DRAIN_STEP_MS = 20_000;

export interface TrainerServiceOptions {
  /** Told when a phase of a commit has ended. */
  readonly onPhase?: OnPhase;
}

export function trainerService({ onPhase = () => undefined }: TrainerServiceOptions = {}): ServiceDefinition {
  return { name: "trainer", needsRun: true, start: (context) => startTrainer(context, onPhase) };
}

async function startTrainer(context: ServiceContext, onPhase: OnPhase): Promise<Running> {
  const config = context.run;
  if (!config)
    throw new MortiseError({ code: "MORTISE_OPERATOR_USAGE", message: "The trainer needs --run." });
  if (config.run.mode !== "training")
    throw new MortiseError({
      code: "MORTISE_CONFIG_INVALID",
      message: `run.mode is ${config.run.mode}: nothing is trained.`,
      fix: "Start the scheduler of such a run alone; `mortise eval` and `mortise infer` do.",
      detail: { field: "run.mode" },
    });
  const objective = objectiveOfRun(config);
  let progress: WarmStartProgress = { step: 0, steps: config.warmStart?.steps ?? 0, loss: Number.NaN };
  const compute = new Compute(
    {
      checkpoint: config.policy.checkpoint,
      backend: config.policy.backend,
      microBatchTokens: config.trainer.microBatchTokens,
      keptVersions: config.async.maxStaleness + 1,
    },
    {
      onProgress: (next) => {
        progress = next;
        context.log.info({ event: "warm-start.progress", ...next });
      },
      onIndependentAbsent: (reason) => context.log.warn({ event: "consistency.independent-absent", reason }),
    },
  );
  // A checkpoint that cannot be opened is the operator's to mend: say so before anything is written.
  const backend = await compute.ready();
  context.log.info({ event: "trainer.backend", ...backend });
  const metrics = new TrainerMetrics(context.metrics);
  const trainer = new Trainer({ context, config, objective, compute, metrics, onPhase });
  void trainer.start().catch((error: unknown) => {
    if (!context.signal.aborted) context.fail(error);
  });
  return {
    bindings: [statusBinding(config.run.id, trainer, compute, backend, () => progress)],
    presence: { run: config.run.id, backend: backend.name },
    isReady: () => trainer.version !== undefined,
    computeCpuMs: () => compute.cpuMs,
    drain: () => drain(trainer, compute),
  };
}

function statusBinding(
  run: string,
  trainer: Trainer,
  compute: Compute,
  backend: Backend,
  progress: () => WarmStartProgress,
) {
  return implement(TrainerService, {
    getTrainerStatus: async () => {
      const { step, steps, loss } = progress();
      const lastLoss = trainer.lastLoss ?? (Number.isNaN(loss) ? undefined : loss);
      return {
        run,
        state: trainer.state,
        version: BigInt(trainer.version ?? 0),
        warmStartStep: step,
        warmStartSteps: steps,
        ...(lastLoss === undefined ? {} : { loss: lastLoss }),
        computeCpuMs: compute.cpuMs,
        backend: backend.name,
      };
    },
  });
}

/** A step that cannot end in time is given up: its groups were not acknowledged, so nothing is lost. */
async function drain(trainer: Trainer, compute: Compute): Promise<void> {
  const isLong = trainer.state === "warm-start" || trainer.state === "recovering";
  const giveUp = setTimeout(() => void compute.stop(), isLong ? 0 : DRAIN_STEP_MS);
  await trainer.stop();
  clearTimeout(giveUp);
  await compute.stop();
}
