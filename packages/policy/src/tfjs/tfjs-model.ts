/**
 * Owns the TensorFlow.js implementation of `PolicyModel`. Forward and backward run on the chosen binding; moments
 * and the update are kept on the host. Made for agreement with the embedded engine, not for speed: every `step`
 * moves weights and gradients across.
 */

import { MortiseError } from "@mortise/contracts";
import type { Tensor, Tensor1D, Tensor2D, Variable } from "@tensorflow/tfjs";
import { readSafetensors, type Tensor as StoredTensor, writeSafetensors } from "../checkpoint/safetensors.js";
import type { DecoderConfig } from "../decoder-config.js";
import { DEFAULT_MAX_TOKENS } from "../embedded/embedded-model.js";
import { checkRows, splitRows } from "../embedded/row-batch.js";
import type {
  AdamWStep,
  PolicyModel,
  SamplingTransform,
  StepOutcome,
  TokenLoss,
  TrainingRow,
} from "../model.js";
import {
  checkStep,
  clipScale,
  decayFactor,
  FIRST_MOMENT,
  parseUpdates,
  SECOND_MOMENT,
  UPDATES,
  updateTensor,
} from "../optimizer-state.js";
import {
  EMBEDDING,
  elementCount,
  HEAD,
  type ParameterSpec,
  parameterCount,
  parameterTable,
} from "../parameter-table.js";
import { checkTemperature } from "../temperature.js";
import { loadBestBinding, type TensorFlow, usesGpu } from "./binding.js";
import { DecoderGraph } from "./graph.js";

export { loadGpuBinding, loadJavaScript } from "./binding.js";

interface Parameter {
  readonly spec: ParameterSpec;
  readonly variable: Variable;
  readonly gradient: Float32Array;
  readonly first: Float32Array;
  readonly second: Float32Array;
}

interface Scores {
  readonly logp: Float32Array[];
  readonly entropy: Float32Array[];
}

class TfjsModel implements PolicyModel {
  readonly backend: string;
  readonly config: DecoderConfig;
  readonly parameterCount: number;
  readonly #tf: TensorFlow;
  readonly #maxTokens: number;
  readonly #parameters: ReadonlyMap<string, Parameter>;
  readonly #graph: DecoderGraph;
  #updates = 0;

  constructor(tf: TensorFlow, config: DecoderConfig, maxTokens: number) {
    this.#tf = tf;
    this.config = config;
    this.backend = `tfjs (${tf.getBackend()}${usesGpu(tf) ? ", gpu" : ""})`;
    this.parameterCount = parameterCount(config);
    this.#maxTokens = maxTokens;
    const zeros = (spec: ParameterSpec) => new Float32Array(elementCount(spec.shape));
    this.#parameters = new Map(
      parameterTable(config).map((spec) => [
        spec.name,
        {
          spec,
          variable: tf.variable(tf.zeros([...spec.shape])),
          gradient: zeros(spec),
          first: zeros(spec),
          second: zeros(spec),
        },
      ]),
    );
    this.#graph = new DecoderGraph(tf, config, (name) => this.#parameter(name).variable);
  }

  #parameter(name: string): Parameter {
    const parameter = this.#parameters.get(this.config.tieWordEmbeddings && name === HEAD ? EMBEDDING : name);
    if (parameter !== undefined) return parameter;
    throw new MortiseError({
      code: "MORTISE_POLICY_SAFETENSORS",
      message: `the model has no tensor "${name}".`,
    });
  }

  loadWeights(safetensors: Uint8Array): void {
    const file = readSafetensors(safetensors);
    for (const { spec, variable } of this.#parameters.values()) {
      const { shape, values } = file.read(spec.name);
      if (shape.join() !== spec.shape.join()) {
        throw new MortiseError({
          code: "MORTISE_POLICY_SAFETENSORS",
          message: `tensor "${spec.name}" has shape [${shape}], the configuration needs [${spec.shape}].`,
          fix: "Use the weights that belong to this config.json.",
          detail: { tensor: spec.name },
        });
      }
      this.#assign(variable, spec, values);
    }
  }

  #assign(variable: Variable, spec: ParameterSpec, values: Float32Array): void {
    const fresh = this.#tf.tensor(values, [...spec.shape]);
    variable.assign(fresh);
    fresh.dispose();
  }

  exportWeights(): Uint8Array {
    return writeSafetensors(
      this.#stored("", ({ variable }) => variable.dataSync() as Float32Array),
      { format: "pt" },
    );
  }

  #stored(prefix: string, values: (parameter: Parameter) => Float32Array): [string, StoredTensor][] {
    return [...this.#parameters.values()].map((p) => [
      prefix + p.spec.name,
      { shape: p.spec.shape, values: values(p).slice() },
    ]);
  }

  exportOptimizer(): Uint8Array {
    const moments = [
      ...this.#stored(FIRST_MOMENT, (p) => p.first),
      ...this.#stored(SECOND_MOMENT, (p) => p.second),
    ];
    return writeSafetensors(moments, { [UPDATES]: String(this.#updates) });
  }

  loadOptimizer(bytes: Uint8Array): void {
    const file = readSafetensors(bytes);
    this.#updates = parseUpdates(file.metadata);
    for (const { spec, first, second } of this.#parameters.values()) {
      first.set(file.read(FIRST_MOMENT + spec.name).values);
      second.set(file.read(SECOND_MOMENT + spec.name).values);
    }
  }

  resetOptimizer(): void {
    this.#updates = 0;
    for (const { first, second } of this.#parameters.values()) {
      first.fill(0);
      second.fill(0);
    }
  }

  logProbabilities(rows: readonly TrainingRow[], transform: SamplingTransform = {}): Float32Array[] {
    return this.#score(rows, checkTemperature(transform)).logp;
  }

  accumulate(rows: readonly TrainingRow[], loss: TokenLoss, transform: SamplingTransform = {}): void {
    if (rows.length === 0) return;
    const temperature = checkTemperature(transform);
    const { logp, entropy } = this.#score(rows, temperature);
    const { dLogp, dEntropy } = loss(logp, entropy);
    let start = 0;
    for (const run of splitRows(rows, this.#maxTokens)) {
      this.#backward(
        run,
        dLogp.slice(start, start + run.length),
        dEntropy?.slice(start, start + run.length),
        temperature,
      );
      start += run.length;
    }
  }

  #score(rows: readonly TrainingRow[], temperature: number): Scores {
    checkRows(rows, this.config.vocabSize);
    const all: Scores = { logp: [], entropy: [] };
    for (const run of splitRows(rows, this.#maxTokens)) {
      const width = longest(run) - 1;
      const [logp, entropy] = this.#tf.tidy(() => {
        const scores = this.#tokenScores(run, temperature);
        return [scores.logp.dataSync(), scores.entropy.dataSync()];
      }) as [Float32Array, Float32Array];
      run.forEach(({ ids }, row) => {
        all.logp.push(unpad(logp, row * width, ids.length));
        all.entropy.push(unpad(entropy, row * width, ids.length));
      });
    }
    return all;
  }

  /** Flat [rows * (longest - 1)]; padded places hold numbers that nobody reads. */
  #tokenScores(rows: readonly TrainingRow[], temperature: number): { logp: Tensor1D; entropy: Tensor1D } {
    const tf = this.#tf;
    const width = longest(rows) - 1;
    const inputs = padded(rows, 0, width);
    const targets = padded(rows, 1, width);
    const logits = this.#graph.logits(tf.tensor2d(inputs, [rows.length, width], "int32"));
    const logSoftmax = tf.logSoftmax(logits.div(temperature)) as Tensor2D;
    const picked = tf.oneHot(tf.tensor1d(targets, "int32"), this.config.vocabSize).toFloat();
    return {
      logp: logSoftmax.mul(picked).sum(1) as Tensor1D,
      entropy: logSoftmax.mul(logSoftmax.exp()).sum(1).neg() as Tensor1D,
    };
  }

  /** The scalar sum(dLogp logp + dEntropy entropy) has the wanted gradient. */
  #backward(
    rows: readonly TrainingRow[],
    dLogp: readonly Float32Array[],
    dEntropy: readonly Float32Array[] | undefined,
    temperature: number,
  ): void {
    const width = longest(rows) - 1;
    const factor = (up: readonly Float32Array[]) => {
      const flat = new Float32Array(rows.length * width);
      up.forEach((row, i) => {
        flat.set(row.subarray(1, rows[i]!.ids.length), i * width);
      });
      return this.#tf.tensor1d(flat);
    };
    const { value, grads } = this.#tf.variableGrads(
      () => {
        const { logp, entropy } = this.#tokenScores(rows, temperature);
        const policy = logp.mul(factor(dLogp)).sum();
        return (dEntropy === undefined ? policy : policy.add(entropy.mul(factor(dEntropy)).sum())).asScalar();
      },
      [...this.#parameters.values()].map(({ variable }) => variable),
    );
    value.dispose();
    for (const { variable, gradient } of this.#parameters.values()) {
      const fresh = grads[variable.name] as Tensor;
      const values = fresh.dataSync();
      for (let i = 0; i < gradient.length; i++) gradient[i]! += values[i]!;
      fresh.dispose();
    }
  }

  zeroGradients(): void {
    for (const { gradient } of this.#parameters.values()) gradient.fill(0);
  }

  gradientNorm(): number {
    let squares = 0;
    for (const { gradient } of this.#parameters.values()) for (const g of gradient) squares += g * g;
    return Math.sqrt(squares);
  }

  gradient(name: string): Float32Array {
    return this.#parameter(name).gradient.slice();
  }

  step(options: AdamWStep): StepOutcome {
    checkStep(options);
    const gradientNorm = this.gradientNorm();
    if (!Number.isFinite(gradientNorm)) return { gradientNorm, skipped: true };
    this.#updates++;
    const clip = clipScale(gradientNorm, options.maxGradientNorm);
    for (const { spec, variable, gradient, first, second } of this.#parameters.values()) {
      const weights = (variable.dataSync() as Float32Array).slice();
      const factors = { clip, keep: decayFactor(options, spec.role), update: this.#updates };
      updateTensor({ p: weights, g: gradient, m: first, v: second }, options, factors);
      this.#assign(variable, spec, weights);
    }
    return { gradientNorm, skipped: false };
  }

  dispose(): void {
    for (const { variable } of this.#parameters.values()) variable.dispose();
  }
}

/** At least 2, so that a row of one id still makes a (never read) prediction. */
function longest(rows: readonly TrainingRow[]): number {
  return Math.max(2, ...rows.map(({ ids }) => ids.length));
}

/** Ids from `offset` on, `width` per row, filled up with 0. */
function padded(rows: readonly TrainingRow[], offset: number, width: number): Int32Array {
  const out = new Int32Array(rows.length * width);
  rows.forEach(({ ids }, row) => {
    out.set(ids.subarray(offset, offset + width), row * width);
  });
  return out;
}

function unpad(flat: Float32Array, start: number, length: number): Float32Array {
  const out = new Float32Array(length).fill(Number.NaN, 0, 1);
  out.set(flat.subarray(start, start + length - 1), 1);
  return out;
}

/** @param binding the TensorFlow.js to use; by default the best installed */
export async function createTfjsModel(
  config: DecoderConfig,
  maxTokens = DEFAULT_MAX_TOKENS,
  binding?: TensorFlow,
): Promise<PolicyModel> {
  return new TfjsModel(binding ?? (await loadBestBinding()), config, maxTokens);
}
