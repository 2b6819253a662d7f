/** Checkpoints on a real file system. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Checkpoint, CheckpointStore } from "../src/commit/checkpoint-store.js";

let directory: string;
let store: CheckpointStore;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "mortise-checkpoints-"));
  const policy = join(directory, "policy");
  await mkdir(policy);
  await writeFile(join(policy, "config.json"), "{}");
  await writeFile(join(policy, "chat_template.jinja"), "template");
  await writeFile(join(policy, "model.safetensors"), "initial weights");
  await writeFile(join(policy, "model.safetensors.index.json"), "{}");
  store = new CheckpointStore(join(directory, "checkpoints"), policy);
  await store.prepare();
});
afterEach(() => rm(directory, { recursive: true, force: true }));

function checkpoint(version: number): Checkpoint {
  return {
    facts: {
      format: 1,
      run: "r1",
      version,
      sha256: `d${version}`,
      baseSha256: null,
      cursor: 7,
      updates: 2,
      groups: ["g1"],
      seed: 1,
      fence: 3,
    },
    weights: Buffer.from(`weights ${version}`),
    optimizer: Buffer.from("moments"),
    record: Buffer.from("record"),
  };
}

describe("checkpoint store", () => {
  test("what is stored is read back, beside the companions of the initial policy", async () => {
    await store.store(await store.stage(checkpoint(4)), 4);
    const read = await store.read(4);
    expect(read.facts).toEqual(checkpoint(4).facts);
    expect(Buffer.from(read.weights).toString()).toBe("weights 4");
    const files = await readdir(join(directory, "checkpoints", "4"));
    expect(files.sort()).toEqual([
      "chat_template.jinja",
      "config.json",
      "model.safetensors",
      "optimizer.bin",
      "step-record.bin",
      "trainer.json",
    ]);
    expect(await readFile(join(directory, "checkpoints", "4", "model.safetensors"), "utf8")).toBe(
      "weights 4",
    );
  });

  test("a staged directory is no version, and is gone after the next start", async () => {
    const staged = await store.stage(checkpoint(1));
    expect(await store.versions()).toEqual([]);
    await store.prepare();
    await expect(readdir(staged)).rejects.toThrow("ENOENT");
  });

  test("storing a version again replaces it", async () => {
    await store.store(await store.stage(checkpoint(1)), 1);
    await store.store(await store.stage({ ...checkpoint(1), weights: Buffer.from("other") }), 1);
    expect(Buffer.from((await store.read(1)).weights).toString()).toBe("other");
  });

  test("versions are sorted as numbers, and removable", async () => {
    for (const version of [10, 9, 2]) await store.store(await store.stage(checkpoint(version)), version);
    await store.remove(9);
    expect(await store.versions()).toEqual([2, 10]);
  });

  test("a missing version and a foreign format are named", async () => {
    await expect(store.read(5)).rejects.toMatchObject({ code: "MORTISE_TRAINER_CHECKPOINT" });
    await store.store(await store.stage(checkpoint(1)), 1);
    const facts = join(directory, "checkpoints", "1", "trainer.json");
    await writeFile(facts, (await readFile(facts, "utf8")).replace('"format": 1', '"format": 2'));
    await expect(store.facts(1)).rejects.toMatchObject({
      code: "MORTISE_TRAINER_CHECKPOINT",
      detail: { version: 1 },
    });
  });

  test("a root that cannot be written is an error with the path", async () => {
    const blocked = new CheckpointStore(join(directory, "policy", "config.json"), directory);
    await expect(blocked.stage(checkpoint(1))).rejects.toMatchObject({ code: "MORTISE_TRAINER_CHECKPOINT" });
  });
});
