/** Owns the random start of a policy that was never trained. Deterministic in (config, seed). */
import { type Tensor, writeSafetensors } from "./checkpoint/safetensors.js";
import { CounterRandom } from "./counter-random.js";
import type { DecoderConfig } from "./decoder-config.js";
import { elementCount, type ParameterSpec, parameterTable } from "./parameter-table.js";

/** Standard deviation of matrices; output projections are divided by sqrt(2 layers), as residuals add up. */
const SCALE = 0.02;
const WIDE_SCALE_BELOW = 512;

function deviation(spec: ParameterSpec, config: DecoderConfig): number {
  // Narrow models start too flat at 0.02: below 512 the width sets the scale.
  const base = config.hiddenSize < WIDE_SCALE_BELOW ? 1 / Math.sqrt(config.hiddenSize) / 2 : SCALE;
  const intoResidual = spec.name.endsWith("o_proj.weight") || spec.name.endsWith("down_proj.weight");
  return intoResidual ? base / Math.sqrt(2 * config.layers) : base;
}

function initialTensor(spec: ParameterSpec, config: DecoderConfig, seed: string): Tensor {
  const values = new Float32Array(elementCount(spec.shape));
  if (spec.role === "norm") values.fill(1);
  if (spec.role === "matrix") {
    const random = new CounterRandom(`initialise/${seed}/${spec.name}`);
    const scale = deviation(spec, config);
    for (let i = 0; i < values.length; i++) values[i] = scale * random.normal(i);
  }
  return { shape: spec.shape, values };
}

/** @returns safetensors, F32: normal matrices, norms 1, biases 0. */
export function initialiseWeights(config: DecoderConfig, seed: number | string): Uint8Array {
  return writeSafetensors(
    parameterTable(config).map((spec) => [spec.name, initialTensor(spec, config, String(seed))] as const),
  );
}
