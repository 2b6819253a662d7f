/** Thin indexes: rows in both files are the same rows, and what others put into a row stays in it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import fc from "fast-check";
import { parquetReadObjects } from "hyparquet";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  fromIndexRow,
  type IndexedTask,
  readIndex,
  toIndexRow,
  writeIndex,
} from "../../src/selection/index.js";
import { encodeIndex } from "../../src/selection/index-parquet.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mortise-index-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** A row as a trainer that is not ours writes it. */
const FOREIGN = {
  data_source: "swe",
  prompt: [
    { role: "system", content: "s" },
    { role: "user", content: "Repair it." },
  ],
  ability: "coding",
  reward_model: { style: "rule", ground_truth: { tests: ["a"] }, threshold: 0.5 },
  extra_info: {
    task_id: "owner__name-1",
    repo: "owner/name",
    index: 7,
    nested: { a: [1, null] },
    weight: "heavy",
  },
  difficulty: 3,
};

const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/);
const json = fc
  .jsonValue({ maxDepth: 2 })
  .filter((value) => value !== null && JSON.stringify(value) !== "-0");
const others = fc.dictionary(fc.stringMatching(/^x_[a-z]{1,6}$/), json, { maxKeys: 3 });
const task: fc.Arbitrary<IndexedTask> = fc.record(
  {
    id,
    instance: text,
    prompt: fc.array(fc.record({ role: text, content: fc.string({ unit: "grapheme" }) }), {
      minLength: 1,
      maxLength: 3,
    }),
    dataset: text,
    repository: text,
    language: text,
    createdAt: text,
    digest: fc.stringMatching(/^[0-9a-f]{64}$/),
    split: fc.constantFrom("train", "test"),
    path: text,
    patchLines: fc.nat(),
    solveRate: fc.double({ min: 0, max: 1, noNaN: true }).map((rate) => rate + 0),
    weight: fc.double({ min: 0.001, max: 10, noNaN: true }),
    other: fc.record({
      row: others.map((rest) => ({ data_source: "d", ability: "a", ...rest })),
      rewardModel: others.map((rest) => ({ style: "s", ground_truth: "t", ...rest })),
      extraInfo: others,
    }),
  },
  { requiredKeys: ["id", "instance", "prompt", "other"] },
) as fc.Arbitrary<IndexedTask>;

test("what is written is read, from either file", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(task, { minLength: 1, maxLength: 5, selector: (of) => of.id }),
      async (tasks) => {
        writeIndex(directory, tasks, "train");
        const normal = tasks.map((of) => JSON.parse(JSON.stringify(of)));
        expect(await readIndex(join(directory, "index.jsonl"))).toEqual(normal);
        expect(await readIndex(join(directory, "index.parquet"))).toEqual(normal);
      },
    ),
    { numRuns: 60 },
  );
});

describe("a row of another trainer", () => {
  test("is read, and written back as it was", async () => {
    const read = fromIndexRow(FOREIGN, "row");
    expect(read).toMatchObject({ id: "owner__name-1", repository: "owner/name", instance: "owner__name-1" });
    const { extra_info, ...rest } = toIndexRow(read);
    expect(rest).toEqual({ ...FOREIGN, extra_info: undefined, ...rest });
    expect(rest.reward_model).toEqual(FOREIGN.reward_model);
    expect(extra_info).toEqual({
      ...FOREIGN.extra_info,
      task: "owner__name-1",
      instance_id: "owner__name-1",
    });
    writeIndex(directory, [read], "train");
    expect(await readIndex(join(directory, "index.parquet"))).toEqual(
      await readIndex(join(directory, "index.jsonl")),
    );
  });

  test("may have its groups as JSON and its prompt as one text", () => {
    const { prompt, reward_model, extra_info } = FOREIGN;
    const asText = {
      prompt: JSON.stringify(prompt),
      reward_model: JSON.stringify(reward_model),
      extra_info: JSON.stringify(extra_info),
    };
    expect(fromIndexRow(asText, "row").prompt).toEqual(prompt);
    expect(fromIndexRow({ ...FOREIGN, prompt: "Repair it." }, "row").prompt).toEqual([
      { role: "user", content: "Repair it." },
    ]);
  });

  test.each([
    ["no task", { ...FOREIGN, extra_info: {} }, "row: extra_info.task is absent."],
    ["no extra_info", { ...FOREIGN, extra_info: null }, "row: extra_info is no object."],
    ["no prompt", { ...FOREIGN, prompt: [{ role: "user" }] }, "row: prompt is no list of messages."],
  ])("with %s is refused", (_, row, message) => {
    expect(() => fromIndexRow(row, "row")).toThrow(MortiseError);
    expect(() => fromIndexRow(row, "row")).toThrow(message);
  });
});

test("a parquet reader sees messages and groups, not text", async () => {
  const row = toIndexRow(fromIndexRow(FOREIGN, "row"));
  const bytes = encodeIndex([row]);
  const [read] = await parquetReadObjects({ file: bytes.buffer as ArrayBuffer });
  expect(read).toMatchObject({
    data_source: "swe",
    prompt: FOREIGN.prompt,
    reward_model: { style: "rule" },
    extra_info: { task: "owner__name-1", repo: "owner/name" },
  });
});

test("an index without a file says which are meant", async () => {
  await expect(readIndex(directory)).rejects.toThrow(
    `${directory}: has neither index.jsonl nor index.parquet.`,
  );
  writeFileSync(join(directory, "index.jsonl"), "{}\n");
  await expect(readIndex(directory)).rejects.toThrow("index.jsonl:1: extra_info is no object.");
});
