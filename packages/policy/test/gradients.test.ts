import { describe, expect, test } from "vitest";
import {
  CounterRandom,
  createPolicyModel,
  type DecoderConfig,
  initialiseWeights,
  type PolicyModel,
  parameterTable,
  readSafetensors,
  type TrainingRow,
  writeSafetensors,
} from "../src/index.js";
import { maxDifference, randomRows, tinyConfigs } from "./tiny-policies.js";

const LENGTHS = [5, 21, 1, 12];
const TEMPERATURE = 0.8;

/** Weights whose norms and biases are not at their start values, so that no gradient is hidden by a 0 or 1. */
function perturbedWeights(config: DecoderConfig): Uint8Array {
  const file = readSafetensors(initialiseWeights(config, 7));
  return writeSafetensors(
    [...file.entries.keys()].map((name) => {
      const { shape, values } = file.read(name);
      const random = new CounterRandom(`perturb/${name}`);
      return [name, { shape, values: values.map((x, i) => x * 2 + 0.1 * random.normal(i)) }] as const;
    }),
  );
}

/** Upstream gradients that depend on the token only. One token in three has none. */
function upstream(rows: readonly TrainingRow[], key: string): Float32Array[] {
  const random = new CounterRandom(key);
  return rows.map(({ ids }, row) =>
    Float32Array.from(ids, (_, t) => ((row + t) % 3 === 0 ? 0 : random.normal(row * 100 + t))),
  );
}

function lossOf(
  model: PolicyModel,
  rows: readonly TrainingRow[],
  dLogp: Float32Array[],
  dEntropy: Float32Array[],
): number {
  let total = 0;
  model.zeroGradients();
  model.accumulate(
    rows,
    (logp, entropy) => {
      logp.forEach((row, i) => {
        for (let t = 1; t < row.length; t++)
          total += row[t]! * dLogp[i]![t]! + entropy[i]![t]! * dEntropy[i]![t]!;
      });
      return { dLogp: rows.map(({ ids }) => new Float32Array(ids.length)) };
    },
    { temperature: TEMPERATURE },
  );
  return total;
}

describe.each(Object.entries(tinyConfigs))("gradients of %s", (_, config) => {
  const rows = randomRows("gradients", LENGTHS, config.vocabSize);
  const dLogp = upstream(rows, "logp");
  const dEntropy = upstream(rows, "entropy");
  const weights = perturbedWeights(config);

  test("agree with TensorFlow.js, values and every tensor's gradient", async () => {
    const embedded = await createPolicyModel(config, { backend: "embedded" });
    const oracle = await createPolicyModel(config, { backend: "tfjs" });
    expect(oracle.backend).toMatch(/^tfjs \(/);
    for (const model of [embedded, oracle]) {
      model.loadWeights(weights);
      model.accumulate(rows, () => ({ dLogp, dEntropy }), { temperature: TEMPERATURE });
    }
    const [own, theirs] = [embedded, oracle].map((model) =>
      model.logProbabilities(rows, { temperature: TEMPERATURE }),
    );
    own!.forEach((row, i) => {
      expect(row[0]).toBeNaN();
      expect(maxDifference(row, theirs![i]!)).toBeLessThan(2e-5);
    });
    for (const { name } of parameterTable(config)) {
      const [a, b] = [embedded.gradient(name), oracle.gradient(name)];
      const scale = Math.max(...b.map(Math.abs));
      expect(scale, name).toBeGreaterThan(1e-3);
      expect(maxDifference(a, b) / scale, name).toBeLessThan(1e-4);
    }
    expect(embedded.gradientNorm() / oracle.gradientNorm()).toBeCloseTo(1, 5);
    oracle.dispose();
  });

  test("agree with finite differences along a random direction of every tensor", async () => {
    const model = await createPolicyModel(config, { backend: "embedded" });
    model.loadWeights(weights);
    model.accumulate(rows, () => ({ dLogp, dEntropy }), { temperature: TEMPERATURE });
    const file = readSafetensors(weights);
    const gradients = new Map(parameterTable(config).map(({ name }) => [name, model.gradient(name)]));
    for (const [name, gradient] of gradients) {
      const random = new CounterRandom(`direction/${name}`);
      // A direction with a good part along the gradient keeps the difference above float32 noise.
      const norm = Math.hypot(...gradient);
      const direction = gradient.map(
        (g, i) => g / norm + (0.5 * random.normal(i)) / Math.sqrt(gradient.length),
      );
      const shifted = (h: number) => {
        model.loadWeights(
          writeSafetensors(
            [...file.entries.keys()].map((other) => {
              const { shape, values } = file.read(other);
              return [
                other,
                { shape, values: other === name ? values.map((x, i) => x + h * direction[i]!) : values },
              ] as const;
            }),
          ),
        );
        return lossOf(model, rows, dLogp, dEntropy);
      };
      const h = 2e-3;
      const numeric = (shifted(h) - shifted(-h)) / (2 * h);
      const analytic = gradient.reduce((sum, g, i) => sum + g * direction[i]!, 0);
      expect(Math.abs(numeric - analytic) / Math.abs(analytic), name).toBeLessThan(1e-2);
    }
  });

  test("are the same when activations are recomputed in parts, and add up", async () => {
    const whole = await createPolicyModel(config, { backend: "embedded" });
    const parts = await createPolicyModel(config, { backend: "embedded", maxTokensPerMicroBatch: 22 });
    for (const model of [whole, parts]) {
      model.loadWeights(weights);
      model.accumulate(rows, () => ({ dLogp, dEntropy }));
    }
    for (const { name } of parameterTable(config)) {
      const [a, b] = [whole.gradient(name), parts.gradient(name)];
      expect(maxDifference(a, b) / Math.max(...a.map(Math.abs)), name).toBeLessThan(1e-5);
    }
    const before = whole.gradientNorm();
    whole.accumulate(rows, () => ({ dLogp, dEntropy }));
    expect(whole.gradientNorm() / before).toBeCloseTo(2, 5);
  });

  test("are the same whether logits were held (every token has a gradient) or computed again", async () => {
    const model = await createPolicyModel(config, { backend: "embedded" });
    model.loadWeights(weights);
    const dense = rows.map(({ ids }, row) => Float32Array.from(ids, (_, t) => 1 + ((row + t) % 5)));
    model.accumulate(rows, () => ({ dLogp: dense }));
    const held = new Map(parameterTable(config).map(({ name }) => [name, model.gradient(name)]));
    model.zeroGradients();
    for (const parity of [0, 1]) {
      model.accumulate(rows, () => ({
        dLogp: dense.map((row) => row.map((value, t) => (t % 2 === parity ? value : 0))),
      }));
    }
    for (const [name, gradient] of held) {
      expect(
        maxDifference(model.gradient(name), gradient) / Math.max(...gradient.map(Math.abs)),
        name,
      ).toBeLessThan(1e-5);
    }
  });
});
