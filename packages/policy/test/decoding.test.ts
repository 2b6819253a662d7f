import { describe, expect, test } from "vitest";
import {
  BatchDecoder,
  createPolicyModel,
  type DecoderConfig,
  type EndReason,
  initialiseWeights,
} from "../src/index.js";
import { maxDifference, randomIds, tinyConfigs } from "./tiny-policies.js";

interface Sampled {
  readonly context: Int32Array;
  readonly ids: number[];
  readonly logp: number[];
  readonly onOlderCache: boolean[];
  end: EndReason | undefined;
}

interface Options {
  readonly key?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly stopIds?: readonly number[];
}

function submit(decoder: BatchDecoder, context: Int32Array, options: Options = {}) {
  const sampled: Sampled = { context, ids: [], logp: [], onOlderCache: [], end: undefined };
  const handle = decoder.submit({
    context,
    maxTokens: options.maxTokens ?? 20,
    temperature: options.temperature ?? 1,
    stopIds: new Set(options.stopIds),
    rngKey: options.key ?? "key",
    onToken: (id, logp, onOlderCache) => {
      sampled.ids.push(id);
      sampled.logp.push(logp);
      sampled.onOlderCache.push(onOlderCache);
    },
    onEnd: (reason) => {
      expect(sampled.end).toBeUndefined();
      sampled.end = reason;
    },
  });
  return { sampled, handle };
}

function drain(decoder: BatchDecoder): void {
  for (let i = 0; decoder.step() > 0; i++) expect(i).toBeLessThan(10_000);
}

const limits = { maxBatch: 8, kvTokens: 1024 };
const create = (config: DecoderConfig, extra = {}) =>
  new BatchDecoder({ config, weights: initialiseWeights(config, 5) }, { ...limits, ...extra });

function alone(config: DecoderConfig, context: Int32Array, options: Options = {}): Sampled {
  const decoder = create(config);
  const { sampled } = submit(decoder, context, options);
  drain(decoder);
  return sampled;
}

describe.each(Object.entries(tinyConfigs))("decoding with %s", (_, config) => {
  const contexts = [3, 17, 40, 1, 33].map((length, i) => randomIds(`context/${i}`, length, config.vocabSize));

  test("reports exactly the log-probabilities that scoring recomputes", async () => {
    const model = await createPolicyModel(config, { backend: "embedded" });
    model.loadWeights(initialiseWeights(config, 5));
    for (const temperature of [1, 0.7]) {
      const samples = contexts.map((context, i) => alone(config, context, { key: `k${i}`, temperature }));
      const rows = samples.map(({ context, ids }) => ({ ids: Int32Array.from([...context, ...ids]) }));
      model.logProbabilities(rows, { temperature }).forEach((row, i) => {
        expect([...row.subarray(contexts[i]!.length)]).toEqual(samples[i]!.logp);
      });
    }
  });

  test("gives the same bits in a batch, in portions and alone (D1)", () => {
    const expected = contexts.map((context, i) => alone(config, context, { key: `k${i}` }));
    const decoder = create(config, { maxBatch: 3, prefillTokens: 5 });
    const together = contexts.map((context, i) => submit(decoder, context, { key: `k${i}` }).sampled);
    drain(decoder);
    expect(together).toEqual(expected);
  });
});

describe("scoring", () => {
  test("of a row does not depend on the rest of the batch, bit for bit", async () => {
    for (const config of Object.values(tinyConfigs)) {
      const model = await createPolicyModel(config, { backend: "embedded" });
      model.loadWeights(initialiseWeights(config, 5));
      const rows = [30, 7, 1, 64, 18].map((length, i) => ({
        ids: randomIds(`row/${i}`, length, config.vocabSize),
      }));
      const together = model.logProbabilities(rows);
      rows.forEach((row, i) => {
        expect(model.logProbabilities([row])[0]).toEqual(together[i]);
      });
      const prefix = model.logProbabilities([{ ids: rows[3]!.ids.slice(0, 21) }])[0]!;
      expect(prefix).toEqual(together[3]!.slice(0, 21));
    }
  });
});

describe("the prefix cache", () => {
  const config = tinyConfigs["qwen3 with q/k norms"]!;
  const prompt = randomIds("prompt", 45, config.vocabSize);

  test("computes a prompt once for a group that starts together, without changing a bit", () => {
    const decoder = create(config);
    const group = Array.from({ length: 6 }, (_, i) => submit(decoder, prompt, { key: `g${i}` }).sampled);
    drain(decoder);
    group.forEach((sampled, i) => {
      expect(sampled).toEqual(alone(config, prompt, { key: `g${i}` }));
    });
    // All but the last id of the prompt, for each of the five that follow the first.
    expect(decoder.reusedTokens).toBe(5 * 44);
  });

  test("lets a later turn go on from an earlier sequence", () => {
    const decoder = create(config);
    const first = submit(decoder, prompt, { key: "turn 1" }).sampled;
    drain(decoder);
    const history = Int32Array.from([
      ...prompt,
      ...first.ids,
      ...randomIds("tool result", 9, config.vocabSize),
    ]);
    const second = submit(decoder, history, { key: "turn 2" }).sampled;
    drain(decoder);
    // The last sampled id was never an input, so it is not in the cache.
    expect(decoder.reusedTokens).toBe(prompt.length + first.ids.length - 1);
    expect(second).toEqual(alone(config, history, { key: "turn 2" }));
  });

  test("copies the common part of a page when a history was rewritten", () => {
    const decoder = create(config);
    submit(decoder, prompt);
    drain(decoder);
    const rewritten = prompt.with(20, (prompt[20]! + 1) % config.vocabSize);
    const { sampled } = submit(decoder, rewritten, { key: "branch" });
    drain(decoder);
    expect(decoder.reusedTokens).toBe(20);
    expect(sampled).toEqual(alone(config, rewritten, { key: "branch" }));
  });

  test("gives its oldest pages to new requests when it is full", () => {
    const decoder = create(config, { kvTokens: 96 });
    for (let i = 0; i < 12; i++) {
      const context = randomIds(`eviction/${i}`, 50, config.vocabSize);
      const { sampled } = submit(decoder, context, { key: `e${i}` });
      drain(decoder);
      expect(sampled).toEqual(alone(config, context, { key: `e${i}` }));
    }
  });

  test("serves many requests on a cache that holds only a few at once (D2)", () => {
    const decoder = create(config, { kvTokens: 160 });
    const samples = Array.from(
      { length: 9 },
      (_, i) =>
        submit(decoder, randomIds(`crowd/${i % 4}`, 20 + i, config.vocabSize), { key: `c${i}` }).sampled,
    );
    drain(decoder);
    samples.forEach((sampled, i) => {
      expect(sampled).toEqual(alone(config, sampled.context, { key: `c${i}` }));
    });
  });
});

describe("requests", () => {
  const config = tinyConfigs["llama tied"]!;
  const context = randomIds("request", 6, config.vocabSize);

  test("end at a stop id, at the limit, or when aborted", () => {
    const free = alone(config, context);
    expect(free.end).toBe("length");
    expect(free.ids).toHaveLength(20);
    const stopped = alone(config, context, { stopIds: [free.ids[4]!] });
    expect(stopped.end).toBe("stop");
    expect(stopped.ids).toEqual(free.ids.slice(0, free.ids.indexOf(free.ids[4]!) + 1));
    const decoder = create(config);
    const { sampled, handle } = submit(decoder, context);
    const queued = submit(decoder, context);
    decoder.step();
    handle.abort();
    queued.handle.abort();
    expect(decoder.step()).toBe(0);
    expect([sampled.end, queued.sampled.end]).toEqual(["abort", "abort"]);
    expect(sampled.ids).toEqual(free.ids.slice(0, 1));
  });

  test("at temperature 0 take the most likely token", async () => {
    const greedy = alone(config, context, { temperature: 0, maxTokens: 5 });
    const model = await createPolicyModel(config, { backend: "embedded" });
    model.loadWeights(initialiseWeights(config, 5));
    greedy.ids.forEach((id, i) => {
      const prefix = [...context, ...greedy.ids.slice(0, i)];
      const candidates = Array.from({ length: config.vocabSize }, (_, next) => ({
        ids: Int32Array.from([...prefix, next]),
      }));
      const scores = model.logProbabilities(candidates).map((row) => row.at(-1)!);
      expect(scores.indexOf(Math.max(...scores))).toBe(id);
    });
  });

  test("sample from the distribution they report", () => {
    const counts = new Float64Array(config.vocabSize);
    const draws = 4000;
    const decoder = create(config, { maxBatch: 64 });
    const logp = new Map<number, number>();
    for (let i = 0; i < draws; i++) {
      decoder.submit({
        context,
        maxTokens: 1,
        temperature: 1,
        stopIds: new Set(),
        rngKey: `draw/${i}`,
        onEnd: () => {},
        onToken: (id, value) => {
          counts[id]!++;
          logp.set(id, value);
        },
      });
    }
    drain(decoder);
    // Chi-square over the ids seen; with at most 36 degrees of freedom 80 has a probability below 1e-4, and keys are fixed.
    let chi = 0;
    for (const [id, value] of logp) {
      const expected = draws * Math.exp(value);
      chi += (counts[id]! - expected) ** 2 / expected;
    }
    expect(chi).toBeLessThan(80);
    expect([...logp.values()].reduce((sum, value) => sum + Math.exp(value), 0)).toBeCloseTo(1, 2);
  });

  test("that cannot be served are refused with the field", () => {
    const decoder = create(config);
    expect(() => submit(decoder, new Int32Array())).toThrow(/context/);
    expect(() => submit(decoder, Int32Array.of(99))).toThrow(/outside the vocabulary/);
    expect(() => submit(decoder, context, { maxTokens: 0 })).toThrow(/maxTokens/);
    expect(() => submit(decoder, context, { temperature: Number.NaN })).toThrow(/temperature/);
    expect(() => submit(decoder, context, { maxTokens: 251 })).toThrow(/above 256/);
    expect(decoder.pending).toBe(0);
  });
});

describe("a change of weights between steps", () => {
  const config = tinyConfigs["llama tied"]!;
  const context = randomIds("swap", 40, config.vocabSize);
  const fresh = initialiseWeights(config, 6);

  test("marks later tokens of running requests and forgets prefixes (C9, K4)", () => {
    const decoder = create(config);
    const running = submit(decoder, context).sampled;
    for (let i = 0; i < 3; i++) decoder.step();
    decoder.swapWeights(fresh);
    const later = submit(decoder, context, { key: "later" }).sampled;
    drain(decoder);
    expect(running.onOlderCache).toEqual(Array.from({ length: 20 }, (_, i) => i >= 3));
    expect(decoder.reusedTokens).toBe(0);
    const clean = new BatchDecoder({ config, weights: fresh }, limits);
    const expected = submit(clean, context, { key: "later" }).sampled;
    drain(clean);
    expect(later).toEqual(expected);
    expect(maxDifference(running.logp, alone(config, context).logp)).toBeGreaterThan(0);
  });

  test("frees the old pages once nobody holds them", () => {
    const decoder = create(config, { kvTokens: 128 });
    for (let i = 0; i < 10; i++) {
      const { sampled } = submit(decoder, context, { key: `${i}` });
      decoder.step();
      decoder.swapWeights(fresh);
      drain(decoder);
      expect(sampled.ids).toHaveLength(20);
    }
  });

  test("to numbers that are not finite stops sampling with an error", () => {
    const decoder = create(config);
    submit(decoder, context);
    const broken = fresh.slice();
    broken.fill(0xff, -4);
    decoder.swapWeights(broken);
    expect(() => decoder.step()).toThrow(/not finite/);
  });

  test("with unusable weights is refused and changes nothing", () => {
    const decoder = create(config);
    const { sampled } = submit(decoder, context);
    decoder.step();
    expect(() => decoder.swapWeights(initialiseWeights({ ...config, layers: 1 }, 1))).toThrow(/missing/);
    drain(decoder);
    expect(sampled).toEqual(alone(config, context));
  });
});
