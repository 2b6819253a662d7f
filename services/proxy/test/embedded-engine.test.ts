/**
 * The embedded engine in its worker threads, behind the whole proxy: what was recorded is what the model says.
 * Uses the built worker file: run `tsc -b` first, as the test command does.
 */
import { assembleTrial } from "@mortise/capture";
import { createLog } from "@mortise/kernel";
import { createPolicyModel } from "@mortise/policy";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EmbeddedEngine } from "../dist/engine/embedded-engine.js";
import { call, joinStream, until } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";

const TOLERANCE = 1e-4;
const log = createLog({ service: "proxy", level: "silent" });

let fixture: ProxyFixture;
let replica: Replica;
let engine: EmbeddedEngine;
const weights: Uint8Array[] = [];

beforeAll(async () => {
  fixture = await ProxyFixture.create({ maxTokensPerTurn: 24 });
  replica = await fixture.start((run, checkpoint) => {
    engine = new EmbeddedEngine({
      id: `engine_${run}`,
      workers: 2,
      config: checkpoint.config,
      maxBatch: 8,
      cacheTokens: 4096,
      log,
    });
    return engine;
  });
  weights.push(await fixture.publishWeights(0));
});
afterAll(() => fixture.stop());

async function turnsOf(trial: string, texts: readonly string[], stream: boolean): Promise<void> {
  const token = await openSession(replica, trial);
  const messages: object[] = [];
  for (const text of texts) {
    messages.push({ role: "user", content: text });
    const { text: answer } = await call(replica.modelAddress, { token, body: { messages, stream } }).done;
    const content = stream ? joinStream(answer).content : JSON.parse(answer).choices[0].message.content;
    messages.push({ role: "assistant", content });
  }
}

function anyRequest() {
  return {
    affinity: "x",
    contextIds: new Int32Array([1, 2, 3]),
    maxTokens: 1,
    temperature: 1,
    stopIds: new Set<number>(),
    rngKey: "x",
    turnIndex: 0,
    onIds: undefined,
    signal: new AbortController().signal,
  };
}

/** Greatest difference between recorded log-probabilities and those of the version that sampled each token. */
async function greatestDelta(trial: string): Promise<{ delta: number; tokens: number }> {
  const { seal } = await replica.rpc.sealSession({ run: RUN, trial });
  const rows = assembleTrial(await fixture.turns(trial), seal!).sequences;
  let delta = 0;
  let tokens = 0;
  for (const [version, bytes] of weights.entries()) {
    const model = await createPolicyModel(fixture.config, { backend: "embedded" });
    model.loadWeights(bytes);
    const scored = model.logProbabilities(rows.map((row) => ({ ids: row.ids })));
    rows.forEach((row, at) => {
      for (let t = 0; t < row.ids.length; t++) {
        if (row.mask[t] !== 1 || row.versions[t] !== version) continue;
        delta = Math.max(delta, Math.abs(row.logProbabilities[t]! - scored[at]![t]!));
        tokens++;
      }
    });
    model.dispose();
  }
  return { delta, tokens };
}

test("recorded log-probabilities equal recomputed ones, streamed and whole, side by side", async () => {
  const trials = ["e0", "e1", "e2", "e3"];
  await Promise.all(trials.map((trial, at) => turnsOf(trial, ["fix the sum", "done"], at % 2 === 0)));
  for (const trial of trials) {
    const { delta, tokens } = await greatestDelta(trial);
    expect(tokens).toBeGreaterThan(0);
    expect(delta).toBeLessThanOrEqual(TOLERANCE);
  }
  expect(engine.status().computeCpuMs).toBeGreaterThan(0);
}, 120_000);

test("new weights are sampled from after the swap, and a receipt says so", async () => {
  weights.push(await fixture.publishWeights(1));
  await until(() => engine.status().loaded?.version === 1);
  await turnsOf("e5", ["fix the sum"], false);
  const [turn] = await fixture.turns("e5");
  expect(turn!.spans.map((span) => span.policyVersion)).toEqual([1n]);
  expect((await greatestDelta("e5")).delta).toBeLessThanOrEqual(TOLERANCE);
});

test("the same key, turn and weights sample the same tokens, whatever runs beside them", async () => {
  const sample = async (trial: string) => {
    const token = await openSession(replica, trial, { rngKey: "same" });
    await call(replica.modelAddress, { token, body: { messages: [{ role: "user", content: "x" }] } }).done;
    return Buffer.from((await fixture.turns(trial))[0]!.sampledIds).toString("hex");
  };
  const [first] = await Promise.all([sample("e6"), turnsOf("e7", ["other", "thing"], true)]);
  expect(await sample("e8")).toBe(first);
});

test("a request the decoder refuses fails alone", async () => {
  const request = { ...anyRequest(), contextIds: new Int32Array([1_000_000]) };
  await expect(engine.generate(request)).rejects.toMatchObject({ code: "MORTISE_PROVIDER_ENGINE" });
  const good = await engine.generate(anyRequest());
  expect(good.ids).toHaveLength(1);
});

test("a worker that dies fails its turns with a retryable error and is replaced with the same weights", async () => {
  const { threads } = engine as unknown as { threads: { worker: { terminate(): Promise<number> } }[] };
  const running = engine.generate({ ...anyRequest(), maxTokens: 400 });
  const failed = expect(running).rejects.toMatchObject({
    code: "MORTISE_PROVIDER_ENGINE",
    disposition: "retry",
  });
  for (const { worker } of threads) await worker.terminate();
  await failed;
  const again = await engine.generate(anyRequest());
  expect(again.spans[0]!.policyVersion).toBe(1);
});
