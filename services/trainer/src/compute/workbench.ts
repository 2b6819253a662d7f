/**
 * Owns the models of the compute thread: the one that trains, one that scores under older weights, and the
 * weights those need. Does not talk to other threads (worker.ts does).
 */
import { readFileSync } from "node:fs";
import { MortiseError } from "@mortise/contracts";
import { type Checkpoint, createPolicyModel, openCheckpoint, type PolicyModel } from "@mortise/policy";
import { demonstrationRows } from "./demonstrations.js";
import { IndependentCheck } from "./independent-check.js";
import type {
  ComputeSetup,
  LoadTask,
  Produced,
  StepResult,
  StepTask,
  WarmStartProgress,
  WarmStartTask,
} from "./messages.js";
import { policyStep, type StepPass } from "./policy-step.js";
import { rescore } from "./rescore.js";
import { warmStart } from "./warm-start.js";

export class Workbench {
  readonly model: PolicyModel;
  readonly #checkpoint: Checkpoint;
  readonly #setup: ComputeSetup;
  readonly #create: () => Promise<PolicyModel>;
  /** Versions that sampled tokens of coming steps may come from. */
  readonly #older = new Map<number, Uint8Array>();
  #reference: Uint8Array | undefined;
  readonly #independent: IndependentCheck;
  #scorer: PolicyModel | undefined;

  /** @param onIndependentAbsent told once why steps go without an independent rescoring */
  static async open(setup: ComputeSetup, onIndependentAbsent: (reason: string) => void): Promise<Workbench> {
    const checkpoint = await openCheckpoint(setup.checkpoint);
    const create = () =>
      createPolicyModel(checkpoint.config, {
        backend: setup.backend,
        maxTokensPerMicroBatch: setup.microBatchTokens,
      });
    const model = await create();
    return new Workbench(setup, checkpoint, create, model, new IndependentCheck(model, onIndependentAbsent));
  }

  private constructor(
    setup: ComputeSetup,
    checkpoint: Checkpoint,
    create: () => Promise<PolicyModel>,
    model: PolicyModel,
    independent: IndependentCheck,
  ) {
    this.#setup = setup;
    this.#checkpoint = checkpoint;
    this.#create = create;
    this.model = model;
    this.#independent = independent;
  }

  /** Version 0 as the checkpoint holds it. */
  initial(): Produced {
    this.model.loadWeights(this.#checkpoint.weights);
    return this.#startingFresh(0);
  }

  /** Version 0 after supervised fine-tuning. */
  warmStart(task: WarmStartTask, onProgress: (progress: WarmStartProgress) => void): Produced {
    const rows = demonstrationRows(
      readDemonstrations(task.demonstrations),
      task.demonstrations,
      this.#checkpoint,
      {
        promptWeight: task.promptWeight,
        maxTokens: this.#checkpoint.config.maxPositions,
      },
    );
    this.model.loadWeights(this.#checkpoint.weights);
    this.model.resetOptimizer();
    warmStart(this.model, rows, task, onProgress);
    return this.#startingFresh(0);
  }

  /** Takes up a committed version, with the older ones still needed. */
  load(task: LoadTask): null {
    this.model.loadWeights(task.weights);
    this.model.loadOptimizer(task.optimizer);
    this.#older.clear();
    for (const { version, weights } of task.older) this.#older.set(version, weights);
    this.#remember(task.version, task.weights);
    this.#reference = task.reference;
    return null;
  }

  async step(task: StepTask): Promise<Produced & { result: StepResult }> {
    const needsScorer = task.objective.kl !== undefined || this.#needsOlder(task);
    if (needsScorer) this.#scorer ??= await this.#create();
    const reference = task.objective.kl ? this.#referenceOf(task) : undefined;
    const pass = policyStep(this.model, task, reference);
    const scored = rescore(task, pass.start, {
      training: () => this.#scorer!,
      independent: await this.#independent.of(task),
      weightsOf: (version) => this.#older.get(version),
    });
    const produced = this.#produced();
    this.#remember(task.version + 1, produced.weights);
    return { ...produced, result: resultOf(task, pass, scored) };
  }

  #needsOlder(task: StepTask): boolean {
    return task.rows.some((row) => row.versions.some((version) => version >= 0 && version !== task.version));
  }

  #referenceOf(task: StepTask): Float32Array[] {
    if (!this.#reference) {
      throw new MortiseError({
        code: "MORTISE_TRAINER_CHECKPOINT",
        message: "The KL term needs the weights of version 0, and they are gone.",
      });
    }
    this.#scorer!.loadWeights(this.#reference);
    return this.#scorer!.logProbabilities(task.rows, { temperature: task.temperature });
  }

  /** Reinforcement learning starts with fresh moments. */
  #startingFresh(version: number): Produced {
    this.model.resetOptimizer();
    const produced = this.#produced();
    this.#reference = produced.weights;
    this.#older.clear();
    this.#remember(version, produced.weights);
    return produced;
  }

  #remember(version: number, weights: Uint8Array): void {
    this.#older.set(version, weights);
    for (const old of this.#older.keys())
      if (old <= version - this.#setup.keptVersions) this.#older.delete(old);
  }

  #produced(): Produced {
    return { weights: this.model.exportWeights(), optimizer: this.model.exportOptimizer() };
  }
}

function resultOf(
  task: StepTask,
  { totals, start }: StepPass,
  scored: ReturnType<typeof rescore>,
): StepResult {
  const perUpdate = (total: number) => (totals.updates === 0 ? null : total / totals.updates);
  return {
    loss: perUpdate(totals.loss),
    gradientNorm: perUpdate(totals.gradientNorm),
    policyLoss: perUpdate(totals.policyLoss),
    kl: task.objective.kl ? perUpdate(totals.kl) : null,
    entropy: perUpdate(totals.entropy),
    clipFraction: totals.trained === 0 ? null : totals.clipped / totals.trained,
    learningRate: totals.learningRate,
    updates: totals.updates,
    ...scored,
    missingLogProbabilities: start.length === 0 ? 0 : scored.drift.nMissing,
  };
}

function readDemonstrations(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_TRAINER_DEMONSTRATIONS",
      message: `${path} cannot be read: ${(cause as Error).message}.`,
      fix: "Set warmStart.demonstrations to a readable JSONL file.",
      detail: { field: "warmStart.demonstrations" },
      cause,
    });
  }
}
