/**
 * Owns one optimiser step over a policy: passes, mini-batches, the objective's gradients, and the comparison of
 * recorded with recomputed log-probabilities. Synchronous and deterministic; runs in the compute thread.
 * Does not own formulas (packages/objectives) or kernels (packages/policy).
 *
 * S1  What the objective holds constant (ratio denominators, importance weights, reference) is taken before
 *     the first update of the step.
 * S2  A trial is never split across mini-batches, and denominators are those of the whole mini-batch, fixed
 *     before the policy splits it into micro-batches.
 */
import { MortiseError } from "@mortise/contracts";
import {
  evaluateRow,
  importanceWeights,
  logSequenceRatio,
  type RowOutcome,
  seededRandom,
  stepDenominators,
  tokenWeight,
  warmupConstant,
} from "@mortise/objectives";
import type { PolicyModel, TokenGradients } from "@mortise/policy";
import type { StepRow, StepTask } from "./messages.js";
import { optimiserStep } from "./optimiser-step.js";

/** What stays constant while the step updates the policy (S1). One entry per row. */
interface Frozen {
  /** Under the weights the step starts from. */
  readonly start: readonly Float32Array[];
  /** Denominator of the ratio. */
  readonly proximal: readonly Float32Array[];
  readonly importance: readonly Float64Array[];
}

export interface StepTotals {
  updates: number;
  loss: number;
  gradientNorm: number;
  policyLoss: number;
  kl: number;
  entropy: number;
  trained: number;
  clipped: number;
  learningRate: number | null;
}

export interface StepPass {
  readonly totals: StepTotals;
  /** Log-probabilities of all rows under the weights the step started from. */
  readonly start: readonly Float32Array[];
}

/** Updates `model` in place. `reference` holds the reference log-probabilities per row, for a KL term. */
export function policyStep(
  model: PolicyModel,
  task: StepTask,
  reference: readonly Float32Array[] | undefined,
): StepPass {
  const totals: StepTotals = {
    updates: 0,
    loss: 0,
    gradientNorm: 0,
    policyLoss: 0,
    kl: 0,
    entropy: 0,
    trained: 0,
    clipped: 0,
    learningRate: null,
  };
  if (task.rows.length === 0) return { totals, start: [] };
  // With one mini-batch the first pass sees every row before any update: its own forward pass serves (S1).
  let frozen =
    task.miniBatches > 1
      ? freeze(task, model.logProbabilities(task.rows, { temperature: task.temperature }))
      : undefined;
  for (let epoch = 0; epoch < task.epochs; epoch++) {
    for (const trials of miniBatches(task, epoch)) {
      const rows = task.rows.flatMap((row, i) => (trials.has(row.trial) ? [i] : []));
      model.zeroGradients();
      model.accumulate(
        rows.map((i) => task.rows[i]!),
        (logp, entropy) => {
          frozen ??= freeze(
            task,
            logp.map((column) => column.slice()),
          );
          return gradients(task, { rows, logp, entropy, frozen, reference, totals });
        },
        { temperature: task.temperature },
      );
      update(model, task, totals);
    }
  }
  return { totals, start: frozen?.start ?? [] };
}

function update(model: PolicyModel, task: StepTask, totals: StepTotals): void {
  const { learningRate, warmupUpdates } = task.optimiser;
  const number = task.updates + totals.updates + 1;
  totals.learningRate = warmupConstant(number, { peak: learningRate, warmup: warmupUpdates });
  const outcome = model.step(optimiserStep(task.optimiser, totals.learningRate));
  if (outcome.skipped || !Number.isFinite(totals.loss)) {
    throw new MortiseError({
      code: "MORTISE_TRAINER_NON_FINITE",
      message: `Update ${number}: loss ${totals.loss}, gradient norm ${outcome.gradientNorm}.`,
      detail: { update: number },
    });
  }
  totals.updates += 1;
  totals.gradientNorm += outcome.gradientNorm;
}

interface Pass {
  readonly rows: readonly number[];
  readonly logp: readonly Float32Array[];
  readonly entropy: readonly Float32Array[];
  readonly frozen: Frozen;
  readonly reference: readonly Float32Array[] | undefined;
  readonly totals: StepTotals;
}

/** The objective's gradients for the rows of one mini-batch. */
function gradients(task: StepTask, pass: Pass): TokenGradients {
  const { objective } = task;
  const byTrial = Map.groupBy(pass.rows.keys(), (at) => task.rows[pass.rows[at]!]!.trial);
  const denominators = stepDenominators(
    [...byTrial.keys()].map((trial) => task.trials[trial]!.trainedTokens),
  ); // S2
  const dLogp: Float32Array[] = new Array(pass.rows.length);
  const dEntropy: Float32Array[] = new Array(pass.rows.length);
  for (const [trial, places] of byTrial) {
    const { advantage, trainedTokens } = task.trials[trial]!;
    const columns = places.map((at) => ({
      current: pass.logp[at]!,
      proximal: pass.frozen.proximal[pass.rows[at]!]!,
      mask: task.rows[pass.rows[at]!]!.mask,
      entropy: pass.entropy[at]!,
      importance: pass.frozen.importance[pass.rows[at]!]!,
      ...(pass.reference ? { reference: pass.reference[pass.rows[at]!]! } : {}),
    }));
    const weight = tokenWeight(objective.aggregation, denominators, trainedTokens, objective.horizon);
    const context = { advantage, weight, logSequenceRatio: logSequenceRatio(columns) };
    for (const [i, at] of places.entries()) {
      const outcome = evaluateRow(objective, columns[i]!, context);
      dLogp[at] = Float32Array.from(outcome.gradient);
      dEntropy[at] = Float32Array.from(columns[i]!.mask, (bit) => bit * outcome.entropyGradient);
      add(pass.totals, outcome);
    }
  }
  return objective.entropyCoefficient === 0 ? { dLogp } : { dLogp, dEntropy };
}

function add(totals: StepTotals, outcome: RowOutcome): void {
  totals.loss += outcome.loss;
  totals.policyLoss += outcome.policyLoss;
  totals.kl += outcome.kl;
  totals.entropy += outcome.entropy;
  totals.trained += outcome.nTrained;
  totals.clipped += outcome.nClipped;
}

/**
 * Ratio denominators and importance weights. In `behaviour` mode the recorded log-probability is the
 * denominator; where the engine gave none (C10) the recomputed one stands in, and the token is counted missing.
 */
function freeze(task: StepTask, start: readonly Float32Array[]): Frozen {
  const isBehaviour = task.ratio === "behaviour";
  const proximal = task.rows.map((row, i) =>
    isBehaviour ? row.behaviour.map((lp, t) => (Number.isNaN(lp) ? start[i]![t]! : lp)) : start[i]!,
  );
  const importance: Float64Array[] = new Array(task.rows.length);
  for (const places of Map.groupBy(task.rows.keys(), (i) => task.rows[i]!.trial).values()) {
    const rows = places.map((i) => ({ ...behaviourRow(task.rows[i]!), proximal: start[i]! }));
    const weights = importanceWeights(rows, task.objective.importance);
    for (const [at, i] of places.entries()) importance[i] = weights.rows[at]!;
  }
  return { start, proximal, importance };
}

function behaviourRow({ behaviour, mask }: StepRow) {
  return { behaviour, mask };
}

/** Trials of each mini-batch: all in one, or shuffled by (seed, epoch) and dealt evenly. */
function miniBatches(task: StepTask, epoch: number): ReadonlySet<number>[] {
  const withRows = [...new Set(task.rows.map((row) => row.trial))];
  const count = Math.min(task.miniBatches, withRows.length);
  if (count <= 1) return withRows.length === 0 ? [] : [new Set(withRows)];
  const random = seededRandom(task.seed * 1009 + epoch);
  for (let i = withRows.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [withRows[i], withRows[j]] = [withRows[j]!, withRows[i]!];
  }
  return Array.from({ length: count }, (_, k) => new Set(withRows.filter((_, i) => i % count === k)));
}
