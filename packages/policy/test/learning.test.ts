import { describe, expect, test } from "vitest";
import { BatchDecoder, createPolicyModel, initialiseWeights, type PolicyModel } from "../src/index.js";
import { randomRows, tinyConfigs } from "./tiny-policies.js";

const STEP = { lr: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0, maxGradientNorm: 1 };

/** Mean negative log-probability before the update. */
function imitate(model: PolicyModel, rows: ReturnType<typeof randomRows>): number {
  const count = rows.reduce((sum, { ids }) => sum + ids.length - 1, 0);
  let loss = 0;
  model.zeroGradients();
  model.accumulate(rows, (logp) => {
    for (const row of logp) for (const value of row.subarray(1)) loss -= value / count;
    return { dLogp: logp.map((row) => new Float32Array(row.length).fill(-1 / count)) };
  });
  model.step(STEP);
  return loss;
}

describe.each(Object.entries(tinyConfigs))("%s", (_, config) => {
  test("learns a batch by heart, writes it from memory, and twice is bit for bit once", async () => {
    const rows = randomRows("by heart", [12, 9, 15, 12], config.vocabSize).map(({ ids }, i) => ({
      ids: ids.with(0, i),
    }));
    const train = async () => {
      const model = await createPolicyModel(config, { backend: "embedded" });
      model.loadWeights(initialiseWeights(config, 2));
      const first = imitate(model, rows);
      let last = first;
      for (let i = 0; i < 120; i++) last = imitate(model, rows);
      expect(first).toBeGreaterThan(3);
      expect(last).toBeLessThan(0.05);
      return model.exportWeights();
    };
    const weights = await train();
    expect(await train()).toEqual(weights);
    const decoder = new BatchDecoder({ config, weights }, { maxBatch: 4, kvTokens: 256 });
    const written = rows.map(({ ids }) => {
      const out: number[] = [ids[0]!];
      decoder.submit({
        context: ids.slice(0, 1),
        maxTokens: ids.length - 1,
        temperature: 0,
        stopIds: new Set(),
        rngKey: "",
        onEnd: () => {},
        onToken: (id) => out.push(id),
      });
      return out;
    });
    while (decoder.step() > 0);
    expect(written).toEqual(rows.map(({ ids }) => [...ids]));
  });
});
