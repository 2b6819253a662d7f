/** Acceptance numbers computed outside this code base, run through the kernels that training uses. */
import { describe, expect, test } from "vitest";
import { decodeBf16 } from "../src/checkpoint/float-formats.js";
import { Arena } from "../src/embedded/arena.js";
import { RotaryTable } from "../src/embedded/rotary-table.js";
import {
  type AdamWStep,
  createPolicyModel,
  decoderConfigFromHf,
  initialiseWeights,
  readSafetensors,
  writeSafetensors,
} from "../src/index.js";
import { clipScale, updateTensor } from "../src/optimizer-state.js";
import { maxDifference, tinyConfigs } from "./tiny-policies.js";

const close = (actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number) =>
  expect(maxDifference(actual, expected)).toBeLessThanOrEqual(tolerance);

describe("reference vectors", () => {
  test("RMSNorm", () => {
    const arena = new Arena();
    const x = arena.allocateFloats(Float32Array.of(0.5, -1, 2, 0.25));
    const w = arena.allocateFloats(Float32Array.of(1, 0.9, 1.1, 1));
    const [y, inverse] = [arena.allocate(4), arena.allocate(1)];
    arena.kernels.rmsNorm(x, 4, w, y, 4, 1, 1, 4, 1e-6, inverse);
    close(arena.floats(y, 4), [0.433860752302, -0.780949354143, 1.90898731013, 0.216930376151], 1e-6);
  });

  test.each([
    ["full", 4, [-1.41335252078, 1.87911806669, -2.82885748174, 4.0581911354]],
    ["partial", 2, [-1.27223251272, -1.83886498514, 3, 4]],
  ])("rotary positions, %s, and back", (_, rotaryDim, expected) => {
    const arena = new Arena();
    const table = new RotaryTable(arena, {
      ...tinyConfigs["llama tied"]!,
      headDim: 4,
      rotaryDim,
      ropeTheta: 10_000,
    });
    table.reserve(4);
    const x = arena.allocateFloats(Float32Array.of(1, 2, 3, 4));
    const position = arena.allocateInts([3]);
    const turn = (direction: number) =>
      arena.kernels.rotate(x, 4, position, table.cosines, table.sines, 1, 1, 4, rotaryDim, direction);
    turn(1);
    close(arena.floats(x, 4), expected, 1e-6);
    turn(-1);
    close(arena.floats(x, 4), [1, 2, 3, 4], 1e-6);
  });

  const adamW = {
    p0: 0.5,
    gradients: [0.1, -0.2, 0.05],
    p: [0.489950001, 0.493562041039, 0.494879591362],
    m: -0.0049,
    v: 5.244001e-5,
  };
  const step: AdamWStep = {
    lr: 0.01,
    beta1: 0.9,
    beta2: 0.999,
    eps: 1e-8,
    weightDecay: 0.01,
    maxGradientNorm: Number.POSITIVE_INFINITY,
  };

  test("AdamW in float64", () => {
    const state = {
      p: Float64Array.of(adamW.p0),
      g: new Float64Array(1),
      m: new Float64Array(1),
      v: new Float64Array(1),
    };
    adamW.gradients.forEach((gradient, i) => {
      state.g[0] = gradient;
      updateTensor(state, step, { clip: 1, keep: 1 - step.lr * step.weightDecay, update: i + 1 });
      expect(Math.abs(state.p[0]! - adamW.p[i]!)).toBeLessThan(1e-9);
    });
    close([state.m[0]!, state.v[0]!], [adamW.m, adamW.v], 1e-9);
  });

  test("AdamW kernel, to the precision of float32", () => {
    const arena = new Arena();
    const [p, g, m, v] = [adamW.p0, 0, 0, 0].map((x) =>
      arena.allocateFloats(new Float32Array(4).fill(x)),
    ) as [number, number, number, number];
    adamW.gradients.forEach((gradient, i) => {
      arena.floats(g, 4).fill(gradient);
      const [rate, root] = [step.lr / (1 - step.beta1 ** (i + 1)), 1 / Math.sqrt(1 - step.beta2 ** (i + 1))];
      arena.kernels.adamW(p, g, m, v, 4, 1, 1 - 1e-4, 0.9, 1 - 0.9, 0.999, 1 - 0.999, rate, root, step.eps);
      close(arena.floats(p, 4), new Float32Array(4).fill(adamW.p[i]!), 1e-7);
    });
  });

  test("global-norm clip", () => {
    const gradients = Float32Array.of(3, 4, 12, 0);
    const arena = new Arena();
    const norm = Math.sqrt(arena.kernels.sumSquares(arena.allocateFloats(gradients), 4));
    expect(norm).toBe(13);
    close(
      gradients.map((g) => g * clipScale(norm, 1)),
      [0.230769213018, 0.307692284024, 0.923076852071, 0],
      1e-6,
    );
  });

  test("bfloat16", () => {
    const decoded = decodeBf16(Uint16Array.of(16256, 48896, 16457, 1, 32640));
    expect([...decoded]).toEqual([
      1,
      -0.5,
      3.140625,
      Math.fround(9.1835496158e-41),
      Number.POSITIVE_INFINITY,
    ]);
  });
});

describe("optimiser step", () => {
  const config = decoderConfigFromHf({
    model_type: "qwen2",
    vocab_size: 11,
    hidden_size: 8,
    intermediate_size: 12,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    num_key_value_heads: 1,
    tie_word_embeddings: true,
  });
  const rows = [{ ids: Int32Array.of(1, 2, 3, 4, 5) }];
  const step: AdamWStep = {
    lr: 0.01,
    beta1: 0.9,
    beta2: 0.95,
    eps: 1e-8,
    weightDecay: 0.1,
    maxGradientNorm: 0.5,
  };
  const upstream = () => ({ dLogp: [new Float32Array(5).fill(-1)] });

  test("gives the same weights on both backends, over several clipped steps", async () => {
    const models = await Promise.all(
      (["embedded", "tfjs"] as const).map((backend) => createPolicyModel(config, { backend })),
    );
    const exports = models.map((model) => {
      model.loadWeights(initialiseWeights(config, 3));
      for (let i = 0; i < 3; i++) {
        model.zeroGradients();
        model.accumulate(rows, upstream);
        expect(model.step({ ...step, decay: "matrices" }).gradientNorm).toBeGreaterThan(step.maxGradientNorm);
      }
      return readSafetensors(model.exportWeights());
    });
    for (const name of exports[0]!.entries.keys()) {
      close(exports[0]!.read(name).values, exports[1]!.read(name).values, 2e-4);
    }
  });

  test("exempts norms and biases from decay only when told to", async () => {
    const model = await createPolicyModel(config, { backend: "embedded" });
    const norm = (decay: "all" | "matrices") => {
      model.loadWeights(initialiseWeights(config, 3));
      model.resetOptimizer();
      model.zeroGradients();
      model.step({ ...step, decay });
      return readSafetensors(model.exportWeights()).read("model.norm.weight").values[0]!;
    };
    expect(norm("matrices")).toBe(1);
    expect(norm("all")).toBeCloseTo(1 - 0.01 * 0.1, 6);
  });

  test("skips a non-finite gradient and leaves weights and moments as they are", async () => {
    const model = await createPolicyModel(config, { backend: "embedded" });
    model.loadWeights(initialiseWeights(config, 3));
    const [weights, optimizer] = [model.exportWeights(), model.exportOptimizer()];
    model.accumulate(rows, () => ({ dLogp: [Float32Array.of(0, 1, Number.NaN, 1, 1)] }));
    expect(model.step(step)).toEqual({ gradientNorm: Number.NaN, skipped: true });
    expect(model.exportWeights()).toEqual(weights);
    expect(model.exportOptimizer()).toEqual(optimizer);
  });

  test("continues bit for bit from an exported state", async () => {
    const model = await createPolicyModel(config, { backend: "embedded" });
    const advance = (target: typeof model) => {
      target.zeroGradients();
      target.accumulate(rows, upstream);
      target.step(step);
    };
    model.loadWeights(initialiseWeights(config, 3));
    advance(model);
    const [weights, optimizer] = [model.exportWeights(), model.exportOptimizer()];
    advance(model);
    const resumed = await createPolicyModel(config, { backend: "embedded" });
    resumed.loadWeights(weights);
    resumed.loadOptimizer(optimizer);
    advance(resumed);
    expect(resumed.exportWeights()).toEqual(model.exportWeights());
  });

  test("refuses values that destroy weights, and states without a count", async () => {
    const model = await createPolicyModel(config, { backend: "embedded" });
    expect(() => model.step({ ...step, lr: Number.NaN })).toThrow(/optimizer\.lr/);
    expect(() => model.loadOptimizer(writeSafetensors([]))).toThrow(/updates/);
  });
});
