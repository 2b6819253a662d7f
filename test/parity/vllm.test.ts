/**
 * A real vLLM server behind the whole proxy: what it sampled, under what, and with which log-probabilities, as
 * the capture journal has it, against our own PolicyModel on the same checkpoint at float32. Prints the numbers.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { assembleTrial } from "@mortise/capture";
import { EngineConfig } from "@mortise/contracts";
import { createLog, systemClock } from "@mortise/kernel";
import { type Checkpoint, createPolicyModel, openCheckpoint, type PolicyModel } from "@mortise/policy";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RecordingEngine } from "../../services/proxy/src/engine/recording/recording-engine.js";
import type { GenerateRequest } from "../../services/proxy/src/engine/types.js";
import { completionsWire } from "../../services/proxy/src/engine/vllm/completions-wire.js";
import { generateWire } from "../../services/proxy/src/engine/vllm/generate-wire.js";
import { VllmServer } from "../../services/proxy/src/engine/vllm/server.js";
import { TurnInTheMaking } from "../../services/proxy/src/engine/vllm/turn.js";
import { VllmEngine } from "../../services/proxy/src/engine/vllm/vllm-engine.js";
import { readPiece, type Wire } from "../../services/proxy/src/engine/vllm/wire.js";
import { call, joinStream } from "../../services/proxy/test/http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "../../services/proxy/test/proxy-fixture.js";
import { type Agreement, agreementOf } from "./agreement.js";
import { EXPERTS, EXPERTS_PER_TOKEN, writeMoeCheckpoint } from "./moe-checkpoint.js";
import { startVllm, type VllmProcess, vllmEnvironment } from "./vllm-process.js";

const MAX_TOKENS = 512;
const LEAST_PEARSON = 0.999;
const GREATEST_P99 = 3e-3;
/** The smallest head that vLLM's attention on the CPU knows is 32. */
const DECODER = {
  hiddenSize: 64,
  intermediateSize: 128,
  layers: 3,
  heads: 4,
  kvHeads: 2,
  headDim: 32,
  rotaryDim: 32,
};
const TEXTS = ["fix the sum", "done", "the tool"];

const environment = vllmEnvironment();
if (!environment)
  console.log("vLLM is not installed here: parity is not run. test/parity/install-vllm.sh installs it.");

describe.skipIf(!environment)("vLLM", () => {
  let fixture: ProxyFixture;
  let checkpoint: Checkpoint;
  let vllm: VllmProcess;
  let replica: Replica;
  let engine: VllmEngine;
  let recordings: string;
  const weights: Uint8Array[] = [];

  beforeAll(async () => {
    fixture = await ProxyFixture.create({ maxPositions: MAX_TOKENS, maxTokensPerTurn: 48, decoder: DECODER });
    checkpoint = await openCheckpoint(fixture.checkpoint);
    recordings = join(fixture.checkpoint, "..", "recordings");
    vllm = await startVllm(environment!, fixture.checkpoint, { maxTokens: MAX_TOKENS });
    replica = await fixture.start(async (_run, opened) => {
      engine = await openVllm(vllm.url, opened);
      return RecordingEngine.open(engine, recordings, systemClock);
    });
    weights.push(await fixture.publishWeights(0));
    while (engine?.status().loaded === undefined) await new Promise((wake) => setTimeout(wake, 100));
  });
  afterAll(async () => {
    await fixture?.stop();
    await vllm?.stop();
  });

  async function openVllm(url: string, opened: Checkpoint): Promise<VllmEngine> {
    const settings = EngineConfig.parse({
      kind: "vllm",
      urls: [url],
      weightsDirectory: join(fixture.checkpoint, "..", "shared"),
    }) as Extract<EngineConfig, { kind: "vllm" }>;
    const log = createLog({ service: "proxy", level: "silent" });
    return VllmEngine.open({
      id: "vllm",
      run: RUN,
      url,
      settings,
      checkpoint: opened,
      key: undefined,
      log,
      clock: systemClock,
    });
  }

  /** A trial of three turns, streamed or not. */
  async function runTrial(trial: string, stream: boolean, sampling: object = {}): Promise<void> {
    const token = await openSession(replica, trial, { sampling });
    const messages: object[] = [];
    for (const content of TEXTS) {
      messages.push({ role: "user", content });
      const { text } = await call(replica.modelAddress, { token, body: { messages, stream } }).done;
      const answer = stream ? joinStream(text).content : (JSON.parse(text).choices[0].message.content ?? "");
      messages.push({ role: "assistant", content: answer });
    }
  }

  /** The training rows of trials, as the trainer would have them. */
  async function rowsOf(trials: readonly string[]) {
    const rows = [];
    for (const trial of trials) {
      const { seal } = await replica.rpc.sealSession({ run: RUN, trial });
      rows.push(...assembleTrial(await fixture.turns(trial), seal!).sequences);
    }
    return rows;
  }

  async function modelOf(version: number): Promise<PolicyModel> {
    const model = await createPolicyModel(fixture.config, { backend: "embedded" });
    model.loadWeights(weights[version]!);
    return model;
  }

  async function agreement(trials: readonly string[], version: number, temperature = 1): Promise<Agreement> {
    const rows = await rowsOf(trials);
    const model = await modelOf(version);
    const scored = model.logProbabilities(
      rows.map(({ ids }) => ({ ids })),
      { temperature },
    );
    model.dispose();
    const [ours, theirs]: [number[], number[]] = [[], []];
    rows.forEach(({ mask, versions, logProbabilities }, at) => {
      for (let t = 0; t < mask.length; t++) {
        if (mask[t] !== 1) continue;
        expect(versions[t]).toBe(version);
        ours.push(scored[at]![t]!);
        theirs.push(logProbabilities[t]!);
      }
    });
    return agreementOf(ours, theirs);
  }

  function expectAgreement(found: Agreement, what: string): void {
    console.log(`${what}: ${JSON.stringify(found)}`);
    expect(found.tokens).toBeGreaterThan(200);
    expect(found.pearson).toBeGreaterThanOrEqual(LEAST_PEARSON);
    expect(found.pearsonOfProbabilities).toBeGreaterThanOrEqual(LEAST_PEARSON);
    expect(found.p99Delta).toBeLessThanOrEqual(GREATEST_P99);
  }

  const trialsNamed = (prefix: string) => Array.from({ length: 8 }, (_, at) => `${prefix}${at}`);

  test("it can do what training needs", () => {
    expect(engine.capabilities).toMatchObject({
      logProbabilities: "processed",
      weightVersions: true,
      pauseResume: true,
      maxTokens: MAX_TOKENS,
    });
  });

  test("log-probabilities in the journal are those of our model, at temperature 1 and below", async () => {
    const [plain, cooler] = [trialsNamed("a"), trialsNamed("b")];
    await Promise.all(plain.map((trial, at) => runTrial(trial, at % 2 === 0)));
    await Promise.all(cooler.map((trial, at) => runTrial(trial, at % 2 === 0, { temperature: 0.7 })));
    expectAgreement(await agreement(plain, 0), "temperature 1");
    expectAgreement(await agreement(cooler, 0, 0.7), "temperature 0.7");
  });

  test("rows hold exactly what the server was given and gave: ids, and the mask on what it sampled", async () => {
    const [file] = await readdir(recordings);
    const lines = (await readFile(join(recordings, file!), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    for (const trial of trialsNamed("a")) {
      const [row, ...others] = await rowsOf([trial]);
      expect(others).toEqual([]);
      const asked = lines.filter((line) => line.kind === "turn" && line.request.affinity === trial);
      expect(asked).toHaveLength(TEXTS.length);
      const mask = new Uint8Array(row!.ids.length);
      for (const { request, ids } of asked) {
        const context = request.contextIds as number[];
        expect([...row!.ids.subarray(0, context.length + ids.length)]).toEqual([...context, ...ids]);
        mask.fill(1, context.length, context.length + ids.length);
      }
      expect(row!.mask).toEqual(mask);
    }
  });

  test("new weights are read from the shared directory and agree with our model under them", async (context) => {
    if (!engine.capabilities.weightUpdates)
      return context.skip("this build cannot prove that weights changed");
    weights.push(await fixture.publishWeights(1));
    await expect.poll(() => engine.status().loaded?.version, { timeout: 60_000 }).toBe(1);
    const trials = trialsNamed("c");
    await Promise.all(trials.map((trial, at) => runTrial(trial, at % 2 === 0)));
    expectAgreement(await agreement(trials, 1), "version 1");
  });

  const request = (over: Partial<GenerateRequest> = {}): GenerateRequest => ({
    affinity: "alone",
    contextIds: Int32Array.of(5, 6, 7, 8),
    maxTokens: 16,
    temperature: 1,
    stopIds: new Set(),
    rngKey: "alone",
    turnIndex: 0,
    onIds: undefined,
    signal: new AbortController().signal,
    ...over,
  });

  test("a stop id is sampled, belongs to the turn, and ends it", async () => {
    const evenIds = new Set(Array.from({ length: 128 }, (_, at) => at * 2));
    const { ids, finish } = await engine.generate(request({ maxTokens: 200, stopIds: evenIds }));
    expect(finish).toBe("stop");
    expect(ids.findIndex((id) => evenIds.has(id))).toBe(ids.length - 1);
  });

  test("an aborted turn ends with what had come, and the server stops sampling it", async () => {
    const stop = new AbortController();
    const onIds = () => stop.abort();
    const cut = await engine.generate(request({ maxTokens: 400, onIds, signal: stop.signal }));
    expect(cut.finish).toBe("abort");
    expect(cut.ids.length).toBeGreaterThan(0);
    expect(cut.ids.length).toBeLessThan(400);
    const running = async () =>
      /vllm:num_requests_running\{[^}]*\} ([\d.]+)/.exec(
        await (await fetch(`${vllm.url}/metrics`)).text(),
      )?.[1];
    await expect.poll(running, { timeout: 30_000 }).toBe("0.0");
  });

  test("weights that change during a turn show in its spans, and it goes on", async (context) => {
    if (!engine.capabilities.weightUpdates)
      return context.skip("this build cannot prove that weights changed");
    let published: Promise<Uint8Array> | undefined;
    const onIds = () => {
      published ??= fixture.publishWeights(2);
    };
    const { ids, spans } = await engine.generate(request({ maxTokens: 450, onIds }));
    weights.push(await published!);
    expect(ids).toHaveLength(450);
    expect(spans.map(({ policyVersion, isStaleCache }) => [policyVersion, isStaleCache])).toEqual([
      [1, false],
      [2, true],
    ]);
  });

  test("both token routes give the same turn", async () => {
    const server = new VllmServer({ url: vllm.url, key: undefined, stallTimeoutMs: 60_000 });
    const sample = async (wire: Wire) => {
      const asked = {
        request: request(),
        model: "policy",
        cacheSalt: "same",
        seed: 7,
        alternatives: 0,
        echoesContext: true,
      };
      const turn = new TurnInTheMaking(asked.request);
      for await (const event of server.events(wire.path, wire.body(asked), { signal: asked.request.signal }))
        turn.add(readPiece(server, wire, event));
      return turn.end({ askedUnder: 0, versionOf: () => 0, mayHaveLogProbabilities: true });
    };
    const [one, other] = [await sample(generateWire), await sample(completionsWire)];
    expect([...other.ids]).toEqual([...one.ids]);
    one.logProbabilities!.forEach((value, at) => {
      expect(other.logProbabilities![at]).toBeCloseTo(value, 5);
    });
    server.close();
  });

  test("routed experts of a mixture-of-experts checkpoint are captured, where the build has them", async (context) => {
    const path = join(fixture.checkpoint, "..", "experts");
    await writeMoeCheckpoint(path, fixture.config, checkpoint.tokenizerFiles);
    let moe: VllmProcess;
    try {
      moe = await startVllm(environment!, path, {
        maxTokens: MAX_TOKENS,
        extra: ["--enable-return-routed-experts"],
      });
    } catch (error) {
      console.log(`routed experts: not run, this vLLM does not serve them:\n${(error as Error).message}`);
      return context.skip();
    }
    try {
      const server = new VllmServer({ url: moe.url, key: undefined, stallTimeoutMs: 60_000 });
      const asked = {
        request: request(),
        model: "policy",
        cacheSalt: "moe",
        seed: 7,
        alternatives: 0,
        echoesContext: true,
      };
      const turn = new TurnInTheMaking(asked.request);
      for await (const event of server.events(generateWire.path, generateWire.body(asked), {
        signal: asked.request.signal,
      }))
        turn.add(readPiece(server, generateWire, event));
      const { ids, routedExperts } = turn.end({
        askedUnder: 0,
        versionOf: () => 0,
        mayHaveLogProbabilities: true,
      });
      const rows = asked.request.contextIds.length + ids.length - 1;
      expect(routedExperts).toMatchObject({
        start: 0,
        shape: [rows, DECODER.layers, EXPERTS_PER_TOKEN],
        dtype: "uint8",
      });
      expect(routedExperts!.bytes.every((expert) => expert < EXPERTS)).toBe(true);
      server.close();
    } finally {
      await moe.stop();
    }
  });
});
