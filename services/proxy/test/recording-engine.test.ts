/** What an engine did is written down exactly, and played again to whoever asks exactly the same. */
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@mortise/kernel";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RecordingEngine } from "../src/engine/recording/recording-engine.js";
import { ReplayingEngine } from "../src/engine/recording/replaying-engine.js";
import { ScriptedEngine } from "../src/engine/scripted/scripted-engine.js";
import type { RoutedExperts } from "../src/engine/types.js";
import { engineRequest, STOP } from "./engine-request.js";

const ROUTING: RoutedExperts = {
  start: 0,
  shape: [4, 1, 2],
  dtype: "uint8",
  bytes: Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 255),
};

let directory: string;
let scripted: ScriptedEngine;
let recording: RecordingEngine;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-recording-"));
  scripted = new ScriptedEngine({ id: "p1_r1" });
  recording = await RecordingEngine.open(scripted, directory, systemClock);
  await recording.loadWeights({ version: 4, sha256: "ab", safetensors: new Uint8Array() });
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const turn = (affinity: string, turnIndex: number, ...contextIds: number[]) =>
  engineRequest({ affinity, turnIndex, contextIds: Int32Array.from(contextIds) });

async function replay(): Promise<ReplayingEngine> {
  await recording.close();
  return ReplayingEngine.open(recording.file, { id: "replay", isTimed: false });
}

describe("recording", () => {
  test("a turn is in the file when its caller has it, and the file is private", async () => {
    scripted.play({ ids: [10, STOP], logProbabilities: [-0.1, -0.2], routedExperts: ROUTING });
    const generated = await recording.generate(engineRequest({ onIds: () => {} }));
    const lines = (await readFile(recording.file, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.map((line) => line.kind ?? line.format)).toEqual([
      "mortise.engine-recording",
      "weights",
      "turn",
    ]);
    expect(lines[2]).toMatchObject({ request: { contextIds: [5, 6, 7] }, ids: [10, STOP], finish: "stop" });
    expect(Float32Array.from(lines[2].logProbabilities)).toEqual(generated.logProbabilities);
    expect((await stat(recording.file)).mode & 0o777).toBe(0o600);
    await recording.close();
  });

  test("it is the engine it wraps to everybody else", async () => {
    expect(recording).toMatchObject({ id: "p1_r1", capabilities: scripted.capabilities });
    expect(recording.status().loaded).toEqual({ version: 4, sha256: "ab" });
    await recording.close();
  });
});

describe("replaying", () => {
  test("the same requests get the same turns, under other session names too", async () => {
    scripted.play(
      { ids: [10, STOP], routedExperts: ROUTING },
      { ids: [11] },
      { ids: [12, STOP], logProbabilities: null },
    );
    const asked = [turn("a", 0, 5), turn("b", 0, 6), turn("a", 1, 5, 10, STOP, 9)];
    const first = [];
    for (const request of asked) first.push(await recording.generate(request));
    const engine = await replay();
    const renamed = [turn("y", 0, 6), turn("x", 0, 5), turn("x", 1, 5, 10, STOP, 9)];
    const second = [];
    for (const request of renamed) second.push(await engine.generate(request));
    expect([second[1], second[0], second[2]].map(plain)).toEqual(first.map(plain));
    expect(engine.capabilities).toEqual(scripted.capabilities);
  });

  test("another context is refused with the first difference", async () => {
    scripted.play({ ids: [10, STOP] }, { ids: [11, STOP] });
    await recording.generate(turn("a", 0, 5, 6));
    await recording.generate(turn("a", 1, 5, 6, 10, STOP, 7, 8));
    const engine = await replay();
    await engine.generate(turn("a", 0, 5, 6));
    const wrong = engine.generate(turn("a", 1, 5, 6, 10, STOP, 9));
    await expect(wrong).rejects.toThrow(/position 4: expected 7 8 \(of 6\), found 9 \(of 5\)/);
    await expect(engine.generate(turn("b", 0, 1))).rejects.toThrow(/every recorded session is being played/);
  });

  test("a first request that begins no recorded session is refused", async () => {
    scripted.play({ ids: [10] });
    await recording.generate(turn("a", 0, 5, 6));
    const engine = await replay();
    await expect(engine.generate(turn("b", 0, 5))).rejects.toThrow(/against a: .* position 1: expected 6/);
  });

  test("failures happen again, after the same ids", async () => {
    const heard: number[][] = [];
    const failing = engineRequest({ onIds: (ids) => heard.push([...ids]) });
    scripted.play({ ids: [10, 11], failAfter: 1 }, { ids: [12, STOP] });
    await expect(recording.generate(failing)).rejects.toThrow(/failure after 1/);
    await recording.generate(engineRequest());
    const engine = await replay();
    await expect(engine.generate(failing)).rejects.toThrow(/failure after 1/);
    expect([...(await engine.generate(engineRequest())).ids]).toEqual([12, STOP]);
    expect(heard).toEqual([[10], [10]]);
  });

  test("a damaged or missing file is refused with the line", async () => {
    scripted.play({ ids: [10] });
    await recording.generate(engineRequest());
    await recording.close();
    const lines = (await readFile(recording.file, "utf8")).trim().split("\n");
    const damaged = join(directory, "damaged.jsonl");
    await writeFile(damaged, [...lines.slice(0, 2), lines[2]!.replace('"finish"', '"end"')].join("\n"));
    const open = (file: string) => ReplayingEngine.open(file, { id: "r", isTimed: false });
    await expect(open(damaged)).rejects.toThrow(/damaged.jsonl:3: .*end/);
    await expect(open(join(directory, "none"))).rejects.toMatchObject({ code: "MORTISE_CONFIG_UNREADABLE" });
  });
});

const plain = (generated: unknown) =>
  JSON.parse(
    JSON.stringify(generated, (_key, value) =>
      ArrayBuffer.isView(value) ? [...(value as Uint8Array)] : value,
    ),
  ) as unknown;
