/** Predictions as people have them: JSON, JSONL, by instance; what is no prediction is refused with its place. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readPredictions } from "../../src/verify/predictions.js";

const base = mkdtempSync(join(tmpdir(), "mortise-predictions-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(base, name);
  writeFileSync(path, text);
  return path;
}

const DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b";

test("lists, lines and objects by instance are the same predictions", async () => {
  const row = { instance_id: "o__p-1", model_name_or_path: "m", model_patch: DIFF };
  const expected = [{ instance: "o__p-1", model: "m", patch: `${DIFF}\n` }];
  expect(await readPredictions(file("a.json", JSON.stringify([row])))).toEqual(expected);
  expect(await readPredictions(file("a.jsonl", `${JSON.stringify(row)}\n\n`))).toEqual(expected);
  const { instance_id, ...rest } = row;
  expect(await readPredictions(file("b.json", JSON.stringify({ [instance_id]: rest })))).toEqual(expected);
});

test("nothing proposed is an empty patch", async () => {
  const rows = [
    { instance_id: "a" },
    { instance_id: "b", model_patch: null },
    { instance_id: "c", model_patch: " \n" },
  ];
  const read = await readPredictions(file("c.json", JSON.stringify(rows)));
  expect(read.map(({ patch }) => patch)).toEqual(["", "", ""]);
});

test("what is none is refused with its row and field", async () => {
  const path = file("d.jsonl", '{"instance_id":"a"}\n{"model_patch":"x"}\n');
  await expect(readPredictions(path)).rejects.toMatchObject({
    code: "MORTISE_TASK_RECORD",
    message: expect.stringContaining("d.jsonl:2: instance_id"),
    detail: { field: "instance_id" },
  });
  await expect(readPredictions(file("e.jsonl", "{"))).rejects.toMatchObject({ code: "MORTISE_TASK_RECORD" });
});
