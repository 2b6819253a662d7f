/** The scripted engine plays what it is given, when it is told to; its script files say which reply is whose. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManualClock } from "@mortise/kernel";
import { Tokenizer, tokenizerFiles, trainTokenizer } from "@mortise/policy";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readScript } from "../src/engine/scripted/script.js";
import { ScriptedEngine } from "../src/engine/scripted/scripted-engine.js";
import { engineRequest, STOP } from "./engine-request.js";

const ENGINE = "MORTISE_PROVIDER_ENGINE";

async function loaded(engine: ScriptedEngine, version = 0): Promise<ScriptedEngine> {
  await engine.loadWeights({ version, sha256: "" });
  return engine;
}

/** Lets everything that is due now happen. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("replies", () => {
  test("ids, log-probabilities, spans and the end are those given", async () => {
    const engine = await loaded(new ScriptedEngine(), 3);
    engine.play({ ids: [10, 11, STOP], logProbabilities: [-0.5, -0.25, -1] }, { ids: [10, 11] });
    expect(await engine.generate(engineRequest())).toMatchObject({
      ids: Int32Array.of(10, 11, STOP),
      logProbabilities: Float32Array.of(-0.5, -0.25, -1),
      spans: [{ start: 0, length: 3, policyVersion: 3, isStaleCache: false }],
      finish: "stop",
    });
    expect((await engine.generate(engineRequest())).finish).toBe("length");
    await expect(engine.generate(engineRequest())).rejects.toMatchObject({ code: ENGINE });
  });

  test("a reply longer than allowed ends at the limit; absent log-probabilities stay absent", async () => {
    const engine = await loaded(new ScriptedEngine());
    engine.play({ ids: [10, 11, 12, STOP], logProbabilities: null });
    const generated = await engine.generate(engineRequest({ maxTokens: 2 }));
    expect([...generated.ids]).toEqual([10, 11]);
    expect(generated).toMatchObject({ finish: "length", logProbabilities: undefined });
  });

  test("the caller chooses by request when the queue is empty", async () => {
    const engine = await loaded(
      new ScriptedEngine({ choose: ({ turnIndex }, ordinal) => ({ ids: [turnIndex, 100 + ordinal] }) }),
    );
    engine.play({ ids: [1] });
    const replies = [];
    for (const turnIndex of [7, 8, 9])
      replies.push([...(await engine.generate(engineRequest({ turnIndex }))).ids]);
    expect(replies).toEqual([[1], [8, 101], [9, 102]]);
  });
});

describe("timing", () => {
  test("ids come when they are due, one at a time", async () => {
    const clock = new ManualClock();
    const engine = await loaded(new ScriptedEngine({ clock }));
    engine.play({ ids: [10, 11, STOP], firstTokenMs: 100, tokenMs: 10 });
    const seen: number[] = [];
    const turn = engine.generate(engineRequest({ onIds: (ids) => seen.push(...ids) }));
    const after: number[][] = [];
    for (const ms of [99, 1, 9, 1, 10]) {
      clock.advance(ms);
      await settle();
      after.push([...seen]);
    }
    expect(after).toEqual([[], [10], [10], [10, 11], [10, 11, STOP]]);
    expect((await turn).finish).toBe("stop");
  });

  test("weights that change during a reply show as two spans", async () => {
    const engine = await loaded(new ScriptedEngine());
    engine.play({ ids: [10, 11, STOP], holdAfter: 1 });
    const turn = engine.generate(engineRequest());
    await settle();
    await engine.loadWeights({ version: 1, sha256: "" });
    engine.held[0]!.release();
    expect((await turn).spans).toEqual([
      { start: 0, length: 1, policyVersion: 0, isStaleCache: false },
      { start: 1, length: 2, policyVersion: 1, isStaleCache: true },
    ]);
    expect(engine.held).toEqual([]);
  });

  test("aborting ends the turn with what was given", async () => {
    const engine = await loaded(new ScriptedEngine());
    const stop = new AbortController();
    engine.play({ ids: [10, 11, STOP], holdAfter: 2 });
    const turn = engine.generate(engineRequest({ signal: stop.signal }));
    await settle();
    expect(engine.status().activeTurns).toBe(1);
    stop.abort();
    const generated = await turn;
    expect(generated.finish).toBe("abort");
    expect([...generated.ids]).toEqual([10, 11]);
    expect(engine.status()).toMatchObject({ activeTurns: 0, sampledTokens: 2 });
  });

  test("a failure comes after as many ids as asked for", async () => {
    const engine = await loaded(new ScriptedEngine());
    const seen: number[] = [];
    engine.play({ ids: [10, 11, STOP], failAfter: 2 });
    const failing = engine.generate(engineRequest({ onIds: (ids) => seen.push(...ids) }));
    await expect(failing).rejects.toMatchObject({ code: ENGINE, disposition: "retry" });
    expect(seen).toEqual([10, 11]);
  });
});

describe("script files", () => {
  const tokenizer = new Tokenizer(
    tokenizerFiles(trainTokenizer(["done ok fix"], { maxMerges: 4, specialTokens: ["<|end|>"] }), {
      eosToken: "<|end|>",
      padToken: "<|end|>",
      chatTemplate: "",
      maxLength: 64,
    }),
  );
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "mortise-script-"));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  const HEADER = { format: "mortise.engine-script", schema: 1 };
  async function scriptOf(...lines: object[]) {
    const file = join(directory, "script.jsonl");
    await writeFile(file, `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`);
    return readScript(file, tokenizer);
  }
  const contextOf = (text: string) => engineRequest({ contextIds: tokenizer.encode(text) });

  test("the first line that fits and is left answers; text becomes ids with the policy's tokenizer", async () => {
    const choose = await scriptOf(
      HEADER,
      { when: { contains: "fix" }, text: "ok<|end|>" },
      { when: { turn: 1 }, ids: [1, 2], tokenMs: 5 },
      { times: "always", text: "done" },
    );
    const ids = (text: string, turnIndex = 0) =>
      choose({ ...contextOf(text), turnIndex }, 0)!.ids as number[];
    expect(ids("please fix")).toEqual([...tokenizer.encode("ok<|end|>")]);
    expect(ids("please fix")).toEqual([...tokenizer.encode("done")]);
    expect(ids("x", 1)).toEqual([1, 2]);
    expect(ids("x", 1)).toEqual([...tokenizer.encode("done")]);
  });

  test("a request that no line fits has no reply", async () => {
    const choose = await scriptOf(HEADER, { text: "ok" });
    expect(choose(contextOf("x"), 0)).toBeDefined();
    expect(choose(contextOf("x"), 1)).toBeUndefined();
  });

  test.each([
    ["another format", [{ format: "mortise.engine-script", schema: 2 }], /:1: schema = 2/],
    ["an unknown field", [HEADER, { txt: "ok" }], /:2: unknown key txt; did you mean text/],
    ["neither text nor ids", [HEADER, { tokenMs: 1 }], /:2: ids.*either text or ids/],
    [
      "an id outside the vocabulary",
      [HEADER, { ids: [1_000_000] }],
      /:2: ids: 1000000 is not in the vocabulary/,
    ],
    [
      "log-probabilities of another length",
      [HEADER, { ids: [1], logProbabilities: [] }],
      /:2: .*0 for 1 ids/,
    ],
  ])("%s is refused with file, line and field", async (_what, lines, message) => {
    await expect(scriptOf(...lines)).rejects.toThrow(message);
  });
});
