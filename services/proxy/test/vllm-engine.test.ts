/**
 * The vLLM engine against a fake server: what is asked, what is taken from the answer, and everything that is
 * refused. That a real vLLM answers like this is shown by test/parity, not here.
 */
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EngineConfig } from "@mortise/contracts";
import { createLog, systemClock } from "@mortise/kernel";
import {
  type Checkpoint,
  type DecoderConfig,
  initialiseWeights,
  openCheckpoint,
  tokenizerFiles,
  trainTokenizer,
  writeCheckpoint,
} from "@mortise/policy";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { consequencesOf } from "../src/engine/consequences.js";
import { VllmEngine } from "../src/engine/vllm/vllm-engine.js";
import { engineRequest, STOP } from "./engine-request.js";
import { type FakeOptions, type FakeReply, FakeVllm, npy } from "./fake-vllm.js";

const ENGINE = "MORTISE_PROVIDER_ENGINE";
const SHA = "0123456789abcdef0123456789abcdef";

let directory: string;
let checkpoint: Checkpoint;
let fake: FakeVllm;
let engine: VllmEngine;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-vllm-"));
  const trained = trainTokenizer(["fix"], { maxMerges: 2, specialTokens: ["<|end|>"] });
  const config: DecoderConfig = {
    modelType: "qwen3",
    vocabSize: trained.vocabSize,
    hiddenSize: 8,
    intermediateSize: 8,
    layers: 1,
    heads: 1,
    kvHeads: 1,
    headDim: 8,
    rmsNormEps: 1e-6,
    ropeTheta: 10_000,
    rotaryDim: 8,
    maxPositions: 64,
    tieWordEmbeddings: true,
    qkvBias: false,
    qkNorm: true,
  };
  const names = { eosToken: "<|end|>", padToken: "<|end|>", chatTemplate: "", maxLength: 64 };
  const path = join(directory, "policy");
  const contents = {
    config,
    weights: initialiseWeights(config, 1),
    tokenizerFiles: tokenizerFiles(trained, names),
  };
  await writeCheckpoint(path, contents);
  checkpoint = await openCheckpoint(path);
});
afterAll(() => rm(directory, { recursive: true, force: true }));
afterEach(async () => {
  await engine?.close();
  await fake?.stop();
});

async function open(options: FakeOptions = {}, settings: object = {}, key?: string): Promise<void> {
  fake = await FakeVllm.start(options);
  const parsed = EngineConfig.parse({ kind: "vllm", urls: [fake.url], stallTimeoutMs: 5000, ...settings });
  engine = await VllmEngine.open({
    id: "p_r1",
    run: "r1",
    url: fake.url,
    settings: parsed as Extract<EngineConfig, { kind: "vllm" }>,
    checkpoint,
    key,
    log: createLog({ service: "proxy", level: "silent" }),
    clock: systemClock,
  });
}

/** Opens with the checkpoint's own weights as version 0, without updates. */
async function openFixed(options: FakeOptions = {}): Promise<void> {
  await open(options);
  await engine.loadWeights({ version: 0, sha256: SHA, safetensors: checkpoint.weights });
}

const reply = (over: Partial<FakeReply> = {}): FakeReply => ({
  pieces: [
    { ids: [10, 11], logProbabilities: [-0.5, -0.25] },
    { ids: [STOP], logProbabilities: [-1] },
  ],
  ...over,
});

describe("probing", () => {
  test("the token route is used where there is one, and what was found is stated", async () => {
    await open({ hasRouting: true });
    expect(engine.capabilities).toEqual({
      tokenIds: true,
      logProbabilities: "processed",
      routedExperts: true,
      weightVersions: true,
      pauseResume: true,
      weightUpdates: false,
      maxTokens: 128,
    });
  });

  test("a server without it is asked for completions, and says less", async () => {
    await open({ hasGenerateRoute: false, hasControlRoutes: false, logProbabilities: "raw" });
    expect(engine.capabilities).toMatchObject({
      logProbabilities: "raw",
      routedExperts: false,
      weightVersions: false,
      pauseResume: false,
    });
    expect(consequencesOf(engine.capabilities, { temperature: 0.7 }).join("\n")).toMatch(
      /turns at temperature 0.7 have none[\s\S]*experts[\s\S]*cannot be changed[\s\S]*which weights/,
    );
  });

  test("a server that gives no token ids is refused, with the fix", async () => {
    const refused = open({ hasGenerateRoute: false, givesTokenIds: false });
    await expect(refused).rejects.toMatchObject({
      code: ENGINE,
      fix: expect.stringMatching(/return_token_ids/),
    });
  });

  test("a model it does not serve is refused with the names it serves", async () => {
    await expect(open({}, { model: "other" })).rejects.toThrow(/engine.model = "other".*serves policy/);
  });

  test("a server that is not there is an engine failure", async () => {
    await open();
    await fake.stop();
    await engine.loadWeights({ version: 0, sha256: SHA, safetensors: checkpoint.weights });
    await expect(engine.generate(engineRequest())).rejects.toMatchObject({
      code: ENGINE,
      disposition: "retry",
    });
    fake = await FakeVllm.start();
  });
});

describe.each([{ hasGenerateRoute: true }, { hasGenerateRoute: false }])(
  "a turn ($hasGenerateRoute)",
  (route) => {
    test("ids, log-probabilities and the end are the server's; ids are told as they come", async () => {
      await openFixed(route);
      fake.play(reply());
      const told: number[][] = [];
      const generated = await engine.generate(engineRequest({ onIds: (ids) => told.push([...ids]) }));
      expect(generated).toMatchObject({
        ids: Int32Array.of(10, 11, STOP),
        logProbabilities: Float32Array.of(-0.5, -0.25, -1),
        spans: [{ start: 0, length: 3, policyVersion: 0, isStaleCache: false }],
        finish: "stop",
      });
      expect(told).toEqual([[10, 11], [STOP]]);
      expect(engine.status()).toMatchObject({ activeTurns: 0, sampledTokens: 3 });
    });

    test("the policy's sampling is asked for by name, under a salt of the weights", async () => {
      await openFixed(route);
      fake.play(reply(), reply(), reply());
      await engine.generate(engineRequest({ temperature: 0.7, maxTokens: 9 }));
      await engine.generate(engineRequest({ turnIndex: 1 }));
      await engine.generate(engineRequest({ turnIndex: 1 }));
      const [first, second, third] = fake.asked.map(({ body }) => ({
        ...(body.sampling_params as object),
        ...body,
      })) as Record<string, unknown>[];
      expect(first).toMatchObject({
        temperature: 0.7,
        top_p: 1,
        top_k: 0,
        min_p: 0,
        repetition_penalty: 1,
        max_tokens: 9,
        stop_token_ids: [STOP],
        ignore_eos: true,
        model: "policy",
        stream: true,
        cache_salt: `r1.0.${SHA.slice(0, 16)}`,
      });
      expect(fake.asked[0]!.headers["x-session-id"]).toBe("trial");
      expect(second!.seed).not.toBe(first!.seed);
      expect(third!.seed).toBe(second!.seed);
    });

    test("a log-probability the server does not have is absent for the whole turn, never a number", async () => {
      await openFixed(route);
      fake.play(reply({ pieces: [{ ids: [10, STOP], logProbabilities: [-0.5, null] }] }));
      expect((await engine.generate(engineRequest())).logProbabilities).toBeUndefined();
    });

    test("aborting hangs up, and the turn ends with what had come", async () => {
      await openFixed(route);
      const stop = new AbortController();
      fake.play(reply({ hold: new Promise(() => {}) }));
      const generated = await engine.generate(
        engineRequest({ signal: stop.signal, onIds: () => stop.abort() }),
      );
      expect(generated).toMatchObject({ finish: "abort", ids: Int32Array.of(10, 11) });
      await expect.poll(() => fake.asked[0]!.isAborted).toBe(true);
    });

    test.each<[string, Partial<FakeReply>, RegExp]>([
      ["a stream that breaks off", { breaksOff: true }, /ECONNRESET/],
      ["an error status", { status: 500 }, /status 500 \(out of order\)/],
      ["an error inside the stream", { events: ['{"error":{"message":"no memory"}}'] }, /no memory/],
      ["an event that is not JSON", { events: ["{"] }, /not JSON/],
      ["an event of another shape", { events: ['{"choices":[{"token_ids":"x"}]}'] }, /shape/],
      ["an end by abort that nobody asked for", { finish: "abort" }, /ended with abort/],
      ["a stop at an id that ends no turn", { pieces: [{ ids: [10] }] }, /stopped at id 10/],
      [
        "ids after a stop id",
        { pieces: [{ ids: [STOP, 10] }], finish: "length" },
        /sampled on after the stop id at 0/,
      ],
      ["another length of context", { contextLength: 2 }, /under 2 ids of context, not 3/],
    ])("%s is an engine failure", async (_what, over, message) => {
      await openFixed(route);
      fake.play(reply(over));
      const failing = engine.generate(engineRequest());
      await expect(failing).rejects.toThrow(message);
      await expect(failing).rejects.toMatchObject({ code: ENGINE, disposition: "retry" });
    });

    test("more ids than were allowed are an engine failure", async () => {
      await openFixed(route);
      fake.play(reply());
      await expect(engine.generate(engineRequest({ maxTokens: 2 }))).rejects.toThrow(/3 ids where 2/);
    });
  },
);

describe("what only the token route reports", () => {
  test("raw log-probabilities count at temperature 1 only", async () => {
    await openFixed({ logProbabilities: "raw" });
    fake.play(reply(), reply());
    expect((await engine.generate(engineRequest())).logProbabilities).toBeDefined();
    expect((await engine.generate(engineRequest({ temperature: 0.7 }))).logProbabilities).toBeUndefined();
  });

  test("tokens under weights nobody announced are refused", async () => {
    await openFixed();
    fake.play(reply({ versions: [{ version: "theirs", start: 0, end: 3 }] }));
    await expect(engine.generate(engineRequest())).rejects.toThrow(/weights "theirs", not ours/);
  });

  test("version spans that do not cover the turn are refused", async () => {
    await openFixed();
    fake.play(reply({ versions: [{ version: "default", start: 0, end: 2 }] }));
    await expect(engine.generate(engineRequest())).rejects.toThrow(/cover 2 of 3/);
  });

  test("routed experts are taken with their shape; a row too few is refused", async () => {
    await openFixed({ hasRouting: true });
    const rows = (count: number) =>
      npy(
        [count, 1, 2],
        "|u1",
        Uint8Array.from({ length: count * 2 }, (_, at) => at),
      );
    fake.play(
      reply({ routedExperts: rows(5) }),
      reply({ routedExperts: rows(4) }),
      reply({ routedExperts: rows(3) }),
    );
    const { routedExperts } = await engine.generate(engineRequest());
    expect(routedExperts).toMatchObject({ start: 0, shape: [5, 1, 2], dtype: "uint8" });
    expect([...routedExperts!.bytes]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await expect(engine.generate(engineRequest())).rejects.toThrow(/4 routing rows, not 5/);
    expect((await engine.generate(engineRequest({ routingFrom: 2 }))).routedExperts).toMatchObject({
      start: 2,
    });
  });
});

describe("weights", () => {
  const shared = () => ({ weightsDirectory: join(directory, "shared") });
  const version = (number: number) => ({
    version: number,
    sha256: `${number}`.repeat(32),
    safetensors: initialiseWeights(checkpoint.config, 10 + number),
  });

  test("without control routes only the checkpoint's own weights are taken, as version 0", async () => {
    await open({ hasControlRoutes: false }, shared());
    expect(engine.capabilities.weightUpdates).toBe(false);
    const refused = engine.loadWeights(version(0));
    await expect(refused).rejects.toMatchObject({
      code: ENGINE,
      fix: expect.stringMatching(/VLLM_SERVER_DEV_MODE/),
    });
    await expect(engine.generate(engineRequest())).rejects.toThrow(/no weights of ours/);
    await engine.loadWeights({ version: 0, sha256: SHA, safetensors: checkpoint.weights });
    expect(engine.status().loaded).toEqual({ version: 0, sha256: SHA });
  });

  test("a server that holds tensors without contents cannot prove a change, and is given none", async () => {
    const ofNothing = createHash("sha256").digest("hex");
    await open({ checksum: ofNothing }, shared());
    expect(engine.capabilities.weightUpdates).toBe(false);
    await expect(engine.loadWeights(version(1))).rejects.toThrow(/version 1 cannot be loaded/);
  });

  test("new weights are shared, read while turns are frozen, labelled, and proven to have changed", async () => {
    await open({}, shared());
    await engine.loadWeights(version(1));
    const label = `r1.1.${"1".repeat(16)}`;
    expect(fake.controls).toEqual([
      "weight_checker",
      "weight_checker",
      "pause?mode=keep&clear_cache=false",
      "update_weight_version",
      "collective_rpc",
      "weight_checker",
      "update_weight_version",
      "resume",
    ]);
    expect(fake.label).toBe(label);
    const [name] = await readdir(join(directory, "shared", "r1"));
    const written = await openCheckpoint(join(directory, "shared", "r1", name!));
    expect(Buffer.compare(written.weights, version(1).safetensors)).toBe(0);
    fake.play(reply());
    expect((await engine.generate(engineRequest())).spans).toMatchObject([
      { policyVersion: 1, isStaleCache: false },
    ]);
    expect(fake.asked[0]!.body.cache_salt).toBe(label);
  });

  test("a turn over a swap has spans of both versions, the later on an older cache", async () => {
    await open({}, shared());
    await engine.loadWeights(version(2));
    let release = () => {};
    const hold = new Promise<void>((resolve) => {
      release = resolve;
    });
    const labels = [2, 3].map((number) => `r1.${number}.${`${number}`.repeat(16)}`);
    const versions = [
      { version: labels[0]!, start: 0, end: 2 },
      { version: labels[1]!, start: 2, end: 3 },
    ];
    fake.play(reply({ hold, versions }));
    const turn = engine.generate(engineRequest());
    await expect.poll(() => fake.asked.length).toBe(1);
    await engine.loadWeights(version(3));
    release();
    expect((await turn).spans).toEqual([
      { start: 0, length: 2, policyVersion: 2, isStaleCache: false },
      { start: 2, length: 1, policyVersion: 3, isStaleCache: true },
    ]);
    expect(await readdir(join(directory, "shared", "r1"))).toHaveLength(2);
  });

  test("a server that already has them is not made to read them again", async () => {
    await open({}, shared());
    fake.label = `r1.4.${"4".repeat(16)}`;
    await engine.loadWeights(version(4));
    expect(fake.controls).toEqual(["weight_checker"]);
  });

  test("a swap that fails lets turns go on but samples nothing more under a name it cannot keep", async () => {
    await open({}, shared());
    await engine.loadWeights(version(5));
    fake.failing = "collective_rpc";
    await expect(engine.loadWeights(version(6))).rejects.toThrow(/collective_rpc failed/);
    expect(fake.controls.at(-1)).toBe("resume");
    expect(engine.status().loaded).toBeUndefined();
    fake.failing = undefined;
    await engine.loadWeights(version(6));
    expect(engine.status().loaded).toMatchObject({ version: 6 });
  });

  test("a server that was restarted is given the weights it should have", async () => {
    await open({}, shared());
    await engine.loadWeights(version(8));
    fake.label = "default";
    fake.checksum = "0";
    fake.play(reply());
    await expect(engine.generate(engineRequest())).rejects.toThrow(/weights "default", not ours/);
    expect(engine.status()).toMatchObject({ isServing: false, loaded: { version: 8 } });
    await expect.poll(() => engine.status().isServing).toBe(true);
    fake.play(reply());
    expect((await engine.generate(engineRequest())).spans).toMatchObject([{ policyVersion: 8 }]);
  });

  test("a swap that changes nothing is a failure, unless the server has held these weights from its start", async () => {
    await open({}, shared());
    fake.keepsWeights = true;
    await engine.loadWeights({ version: 0, sha256: "0".repeat(32), safetensors: checkpoint.weights });
    expect(engine.status().loaded).toMatchObject({ version: 0 });
    await expect(engine.loadWeights(version(9))).rejects.toThrow(/what they were before/);
    expect(engine.status().loaded).toBeUndefined();
  });
});
