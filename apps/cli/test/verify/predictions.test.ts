/** Predictions as people have them: JSON, JSONL, by instance; what is no prediction is refused with its place. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Instances } from "../../src/verify/instances.js";
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

test("an object by instance whose value is no object is refused, not taken for an empty proposal", async () => {
  const path = file("f.json", JSON.stringify({ "o__p-1": DIFF }));
  await expect(readPredictions(path)).rejects.toMatchObject({
    code: "MORTISE_TASK_RECORD",
    detail: { field: "o__p-1" },
  });
});

test("two proposals of one model for one instance are refused with both places", async () => {
  const row = (model: string) => ({ instance_id: "a", model_name_or_path: model, model_patch: DIFF });
  const text = [row("m"), row("other"), row("m")].map((one) => `${JSON.stringify(one)}\n`).join("\n");
  const path = file("g.jsonl", text);
  await expect(readPredictions(path)).rejects.toMatchObject({
    message: expect.stringMatching(/g\.jsonl:5: a has .* at .*g\.jsonl:1\./),
  });
});

test("a byte order mark is no part of the first row", async () => {
  expect(await readPredictions(file("h.jsonl", '\uFEFF{"instance_id":"a"}\n'))).toHaveLength(1);
});

test("an instance is a name among the tasks, never a path out of them; a damaged record is named", () => {
  const root = join(base, "tasks");
  for (const name of ["tasks/own", "elsewhere"]) {
    mkdirSync(join(base, name), { recursive: true });
    writeFileSync(join(base, name, "task.toml"), "");
  }
  const instances = new Instances(root);
  expect(instances.directoryOf("own")).toBe(join(root, "own"));
  for (const instance of ["../elsewhere", join(base, "elsewhere"), "own/../own", "..", "."])
    expect(() => instances.directoryOf(instance)).toThrow(
      expect.objectContaining({ code: "MORTISE_TASK_UNKNOWN" }),
    );
  mkdirSync(join(root, "own/tests"));
  writeFileSync(join(root, "own/tests/config.json"), "{");
  expect(() => new Instances(root).directoryOf("o__p-1")).toThrow(
    expect.objectContaining({ code: "MORTISE_TASK_INVALID" }),
  );
});
