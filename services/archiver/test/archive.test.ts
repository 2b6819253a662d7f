import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, toJson } from "@bufbuild/protobuf";
import {
  FinishReason,
  PhaseRecordSchema,
  RunPhase,
  TurnRelation,
  TurnRole,
  TurnSchema,
} from "@mortise/contracts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { dataPath } from "../src/archive/layout.js";
import { readArchive } from "../src/archive/read.js";
import { readTurns } from "../src/archive/read-turns.js";
import { ArchiveWriter } from "../src/archive/writer.js";
import { TURNS } from "../src/tables/captures.js";
import { PHASES } from "../src/tables/runs.js";
import { TABLES } from "../src/tables/sources.js";
import { row } from "../src/tables/table.js";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-archive-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const begun = { sequence: 0, created: "2026-01-01" };
async function open(): Promise<ArchiveWriter> {
  const writer = await ArchiveWriter.open(directory, TABLES);
  if (writer.position.streams.METRICS === undefined) writer.begin("METRICS", begun);
  return writer;
}
const phase = (sequence: number) =>
  row(PHASES, create(PhaseRecordSchema, { phase: RunPhase.TRAIN, atMs: BigInt(sequence) }), BigInt(sequence));
const sequences = async () =>
  (await readArchive(directory, "r1", "phases")).map(({ sequence }) => Number(sequence));

describe("the archive", () => {
  it("shows rows once their commit is complete, in stream order", async () => {
    const writer = await open();
    for (const n of [1, 2, 3]) writer.add("METRICS", n, "r1", phase(n));
    expect(await sequences()).toEqual([]);
    await writer.commit();
    writer.add("METRICS", 4, "r1", phase(4));
    await writer.commit();
    expect(await sequences()).toEqual([1, 2, 3, 4]);
    expect(writer.position.streams.METRICS?.sequence).toBe(4);
  });

  it("goes on after a crash between files and position without a gap or a duplicate", async () => {
    const writer = await open();
    writer.add("METRICS", 1, "r1", phase(1));
    await writer.commit();
    // What a crash leaves: a complete data file beyond the position, and a partial one.
    const stray = dataPath(directory, "r1", "phases", { stream: "METRICS", from: 2, to: 3 });
    await writeFile(stray, "complete, but not covered");
    await writeFile(`${stray}.partial`, "half");
    expect(await sequences()).toEqual([1]);
    const again = await open();
    expect(again.position.streams.METRICS?.sequence).toBe(1);
    for (const n of [2, 3, 4]) again.add("METRICS", n, "r1", phase(n));
    await again.commit();
    expect(await sequences()).toEqual([1, 2, 3, 4]);
    expect(await readdir(join(directory, "r1", "phases"))).toHaveLength(2);
  });

  it("lets a stream begin while a commit is under way", async () => {
    const writer = await open();
    writer.add("METRICS", 1, "r1", phase(1));
    const committed = writer.commit();
    await new Promise((resolve) => setImmediate(resolve));
    writer.begin("TRIALS", begun);
    await committed;
    writer.add("TRIALS", 4);
    await writer.commit();
    expect(writer.position.streams).toMatchObject({ METRICS: { sequence: 1 }, TRIALS: { sequence: 4 } });
  });

  it("keeps the rows of a commit that failed for the next one", async () => {
    const writer = await open();
    writer.add("METRICS", 1, "r1", phase(1));
    const obstacle = join(directory, "r1");
    await writeFile(obstacle, "a file where the run's directory should be");
    await expect(writer.commit()).rejects.toThrow();
    writer.add("METRICS", 2, "r1", phase(2));
    await rm(obstacle);
    await writer.commit();
    expect(await sequences()).toEqual([1, 2]);
  });

  it("gives turns back exactly: ids, log-probabilities, spans; what is missing is null", async () => {
    const writer = await open();
    writer.begin("CAPTURES", begun);
    const sampledIds = new Uint8Array(new Int32Array([5, 70_000, 2]).buffer);
    const logProbabilities = new Uint8Array(new Float32Array([-0.5, -0.25, -8]).buffer);
    const spans = [{ start: 0, length: 3, policyVersion: 2n }];
    const turns = [
      create(TurnSchema, {
        trial: "t",
        turn: "0",
        sampledIds,
        logProbabilities,
        spans,
        startedAtMs: 1_700_000_000_000n,
      }),
      create(TurnSchema, { trial: "t", turn: "1", sampledIds }),
    ];
    for (const [i, turn] of turns.entries()) {
      writer.add("CAPTURES", i + 1, "r1", row(TURNS, turn, BigInt(i + 1)));
    }
    await writer.commit();
    const [first, second] = await readArchive(directory, "r1", "turns");
    expect(first).toMatchObject({ trial: "t", turn: "0", started_at_ms: 1_700_000_000_000n });
    expect(new Uint8Array(first!.sampled_ids as Uint8Array)).toEqual(sampledIds);
    expect(new Uint8Array(first!.log_probabilities as Uint8Array)).toEqual(logProbabilities);
    expect(first!.spans).toEqual([{ length: 3, policyVersion: "2" }]);
    expect(second!.log_probabilities).toBeNull();
    expect(second!.applied_sampling).toBeNull();
  });

  it("gives turns back as the messages they were", async () => {
    const writer = await open();
    writer.begin("CAPTURES", begun);
    const turn = create(TurnSchema, {
      run: "r1",
      trial: "t",
      session: "s",
      thread: "main",
      turn: "1",
      index: 1,
      parent: "0",
      relation: TurnRelation.EXTENDS,
      role: TurnRole.TRAIN,
      roleReason: "main",
      messageDigests: [new Uint8Array([1, 2, 255])],
      toolsDigest: new Uint8Array([3]),
      bodyDigest: new Uint8Array([4]),
      textDigest: new Uint8Array([5]),
      prefixLength: 7,
      suffixIds: new Uint8Array([1, 0, 0, 0]),
      sampledIds: new Uint8Array(new Int32Array([5, 70_000]).buffer),
      logProbabilities: new Uint8Array(new Float32Array([-0.5, -8]).buffer),
      spans: [{ start: 0, length: 2, policyVersion: 3n, staleCache: true }],
      finish: FinishReason.STOP,
      toolCalls: [{ id: "call_1", name: "edit", tokenEnd: 2, tokenStart: 0 }],
      bytesDelivered: 12n,
      appliedSampling: { temperature: 1, maxTokens: 24 },
      historyPolicy: "keep",
      dialect: "openai-chat",
      engine: "e",
      startedAtMs: 1_700_000_000_000n,
      endedAtMs: 1_700_000_000_001n,
      evaluation: true,
      harness: "claude-code",
      agent: "a",
      model: "m",
      purpose: "agent",
      spawnedBy: "0",
      follows: "0",
      keptMessages: 2,
      flags: ["call-renamed"],
    });
    writer.add("CAPTURES", 1, "r1", row(TURNS, turn, 1n));
    writer.add("CAPTURES", 2, "r1", row(TURNS, create(TurnSchema, { run: "r1", turn: "2" }), 2n));
    await writer.commit();
    const read = await readTurns(directory, "r1");
    expect(read.map((one) => toJson(TurnSchema, one))).toEqual([
      toJson(TurnSchema, turn),
      toJson(TurnSchema, create(TurnSchema, { run: "r1", turn: "2" })),
    ]);
  });

  it("refuses a position file it cannot read", async () => {
    await writeFile(join(directory, "position.json"), '{"schema":2}');
    await expect(open()).rejects.toMatchObject({ code: "MORTISE_OPERATOR_ARCHIVE" });
  });
});
