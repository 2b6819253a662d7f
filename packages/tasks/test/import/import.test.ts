/** Importing whole files: the same bytes each time, nothing half written, nothing overwritten unasked. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { describeProblem } from "../../src/import/index.js";
import { taskIdOf } from "../../src/import/task-id.js";
import { digestOfFiles, filesBelow, loadIndexedTask, readTaskIndex, taskDigest } from "../../src/index.js";
import { readIndex } from "../../src/selection/index.js";
import {
  EVERY_VARIANT,
  SWE_BENCH,
  SWE_BENCH_5,
  SWE_REBENCH,
  SWE_REBENCH_2,
  writeJsonl,
  writeParquet,
} from "./rows.js";
import { importFile, importRows, refusal, workplace } from "./workplace.js";

const place = workplace();
const out = () => join(place.directory, "out");
const ROWS = EVERY_VARIANT.map(([, row]) => row);

function bytesBelow(directory: string): string {
  return digestOfFiles(
    filesBelow(directory).map((path) => ({ path, kind: "-", content: readFileSync(join(directory, path)) })),
  );
}

describe("one source, one result", () => {
  test("every task is in the index with the digest of its directory", async () => {
    const report = await importRows(place, ROWS);
    expect(report).toMatchObject({ rows: 7, written: 7, kept: 0, replaced: 0, repeated: 0 });
    const index = readTaskIndex(out());
    expect(index.map(({ id }) => id)).toEqual(ROWS.map((row) => taskIdOf(String(row.instance_id))).sort());
    for (const entry of index) {
      expect(entry).toMatchObject({ split: "train", digest: taskDigest(join(out(), entry.id)) });
      expect(loadIndexedTask(out(), entry).tests.expected).toBeDefined();
    }
  });

  test("JSONL, JSON and parquet of the same rows give the same bytes", async () => {
    await importRows(place, ROWS);
    const whole = join(place.directory, "rows.json");
    writeFileSync(whole, JSON.stringify(ROWS, null, 1));
    await importFile(whole, join(place.directory, "json"));
    // A column of a parquet file has one type: rows with lists of tests and rows with lists as text are two files.
    const parquet = join(place.directory, "parquet");
    mkdirSync(parquet);
    const hasLists = (row: (typeof ROWS)[number]) => Array.isArray(row.FAIL_TO_PASS);
    writeParquet(parquet, "a.parquet", ROWS.filter(hasLists));
    writeParquet(
      parquet,
      "b.parquet",
      ROWS.filter((row) => !hasLists(row)),
      "GZIP",
    );
    expect(await importFile(parquet, join(place.directory, "from-parquet"))).toMatchObject({ rows: 7 });
    expect(bytesBelow(join(place.directory, "json"))).toBe(bytesBelow(out()));
    // What is a group of fields in JSON may be JSON in a text column; the record keeps it as a group either way.
    for (const { id } of readTaskIndex(out()))
      if (id !== "0b01001001__spectree-64")
        expect([id, bytesBelow(join(place.directory, "from-parquet", id))]).toEqual([
          id,
          bytesBelow(join(out(), id)),
        ]);
  });

  test("rows of a folder are those of its files, in the order of their names", async () => {
    const folder = join(place.directory, "folder");
    mkdirSync(join(folder, "data"), { recursive: true });
    writeJsonl(folder, "data/2.jsonl", [SWE_BENCH]);
    writeJsonl(folder, "data/1.jsonl", [SWE_BENCH_5]);
    writeFileSync(join(folder, "README.md"), "no rows");
    expect(await importFile(folder, out())).toMatchObject({ rows: 2, written: 2 });
  });
});

describe("an import again", () => {
  test("keeps what is equal and writes what is missing, or was left half written", async () => {
    await importRows(place, ROWS);
    const before = bytesBelow(out());
    rmSync(join(out(), "psf__requests-1"), { recursive: true });
    mkdirSync(join(out(), ".partial-psf__requests-1", "tests"), { recursive: true });
    expect(await importRows(place, ROWS)).toMatchObject({ written: 1, kept: 6 });
    expect(bytesBelow(out())).toBe(before);
  });

  test("refuses what differs unless it may replace it", async () => {
    await importRows(place, ROWS);
    const before = bytesBelow(out());
    writeFileSync(join(out(), "psf__requests-1", "instruction.md"), "Something else.\n");
    const error = await refusal(() => importRows(place, ROWS));
    expect(error).toMatchObject({ code: "MORTISE_TASK_EXISTS" });
    expect(error.message).toContain(`${out()}: psf__requests-1.`);
    expect(await importRows(place, ROWS, { replace: true })).toMatchObject({ kept: 6, replaced: 1 });
    expect(bytesBelow(out())).toBe(before);
  });

  test("of another file into the same directory adds to its index, and forgets what is gone", async () => {
    await importRows(place, [SWE_BENCH, SWE_BENCH_5]);
    rmSync(join(out(), "elsewhere__sum-2"), { recursive: true });
    await importRows(place, [SWE_REBENCH]);
    expect((await readIndex(out())).map(({ id }) => id)).toEqual([
      "0b01001001__spectree-64",
      "psf__requests-1",
    ]);
  });
});

describe("nothing is written", () => {
  test("when one row of many is refused; with permission, the others are", async () => {
    const rows = [...ROWS, { ...SWE_BENCH, instance_id: "psf__requests-2", test_patch: "" }];
    const error = await refusal(() => importRows(place, rows));
    expect(error.message).toBe(
      "A record of a data set cannot be used. rows.jsonl:8 (psf__requests-2): test_patch is absent or empty.",
    );
    expect(error.fix).toBe("Add test_patch to the record. Or pass --skip-invalid to leave such rows out.");
    expect(existsSync(out())).toBe(false);
    const report = await importRows(place, rows, { skipInvalid: true });
    expect(report.written).toBe(7);
    expect(report.refused.map(describeProblem)).toEqual([
      "rows.jsonl:8 (psf__requests-2): test_patch is absent or empty",
    ]);
  });

  test("when many are refused, the first ten are named", async () => {
    const rows = Array.from({ length: 12 }, (_, i) => ({
      ...SWE_BENCH,
      instance_id: `a__b-${i}`,
      patch: "",
    }));
    const error = await refusal(() => importRows(place, rows));
    expect(error.message).toContain("rows.jsonl:10 (a__b-9): patch is absent or empty; and 2 more.");
  });

  test.each([
    ["a line that is no JSON", `${JSON.stringify(SWE_BENCH)}\n{"a":\n`, "rows.jsonl:2 is not valid JSON."],
    [
      "a first line that is cut off",
      JSON.stringify(SWE_BENCH).slice(0, -9),
      "rows.jsonl:1 is not valid JSON.",
    ],
    ["an empty file", "\n", "rows.jsonl is empty."],
    ["a line that is no object", `${JSON.stringify(SWE_BENCH)}\n[1]\n`, "rows.jsonl:2 is no JSON object."],
    [
      "bytes that are no text",
      Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
      "is not valid UTF-8.",
    ],
    ["an array of other things", "[1]", "rows.jsonl[0] is no JSON object."],
    ["no rows", "[]", "holds no rows."],
    ["half a parquet file", "PAR1 and nothing else", "not a readable parquet file"],
  ])("for %s", async (_, content, message) => {
    const path = join(place.directory, "rows.jsonl");
    writeFileSync(path, content);
    const error = await refusal(() => importFile(path, out()));
    expect(error.code).toBe("MORTISE_TASK_SOURCE");
    expect(error.message).toContain(message);
    expect(existsSync(out())).toBe(false);
  });

  test("for a folder without rows", async () => {
    const error = await refusal(() => importFile(place.directory, out()));
    expect(error.message).toContain("holds no parquet, JSONL or JSON file.");
  });
});

describe("ids", () => {
  test("two instances never share a directory", async () => {
    const rows = [
      { ...SWE_BENCH_5, instance_id: "a.b__c-1" },
      { ...SWE_BENCH_5, instance_id: "a-b__c-1" },
    ];
    const error = await refusal(() => importRows(place, rows));
    expect(error.message).toContain(
      "rows.jsonl:2 (a-b__c-1): instance_id would have the directory a-b__c-1, as a.b__c-1 at rows.jsonl:1 has.",
    );
  });

  test("a repeated row counts once; another row of the same instance is refused", async () => {
    expect(await importRows(place, [SWE_BENCH, SWE_BENCH])).toMatchObject({ written: 1, repeated: 1 });
    const rows = [SWE_BENCH, { ...SWE_BENCH, problem_statement: "another" }];
    const error = await refusal(() => importRows(place, rows, { replace: true }));
    expect(error.message).toContain("instance_id is that of rows.jsonl:1 too, with other content.");
  });

  test("a long id is cut and keeps apart what differs only at its end", () => {
    const long = "a".repeat(140);
    const [first, second] = [taskIdOf(`${long}1`), taskIdOf(`${long}2`)];
    expect(first).toMatch(/^a{119}-[0-9a-f]{8}$/);
    expect(first).not.toBe(second);
    expect(taskIdOf("")).toBeUndefined();
    expect(taskIdOf("é")).toBeUndefined();
  });
});

test("what was mended is said, and columns nothing reads are listed once and kept", async () => {
  const row = {
    ...SWE_BENCH,
    patch: String(SWE_BENCH.patch).trimEnd(),
    created_at: "soon",
    PASS_TO_PASS: ["a::b", "a::b", "tests/test_sum.py::test_two"],
    stars: 12,
  };
  const report = await importRows(place, [row, { ...SWE_BENCH_5, stars: 3 }]);
  expect(report.unknownColumns).toEqual(["stars"]);
  expect(report.repairs.map(({ field, what }) => `${field} ${what}`)).toEqual([
    "patch ended without a newline, which was added",
    "PASS_TO_PASS names 1 tests twice or not at all",
    "PASS_TO_PASS has 1 tests of FAIL_TO_PASS, which decides",
    "created_at is no date and was left out",
  ]);
  const config = JSON.parse(readFileSync(join(out(), "psf__requests-1/tests/config.json"), "utf8"));
  expect(config).toMatchObject({ stars: 12, patch: SWE_BENCH.patch });
});

test("progress is told row by row, twice", async () => {
  const told: string[] = [];
  await importRows(place, [SWE_BENCH, SWE_BENCH_5], {
    onRow: (stage, rows) => told.push(`${rows} ${stage}`),
  });
  expect(told).toEqual(["1 checked", "2 checked", "1 written", "2 written"]);
});

test("a format that is named is used whatever the columns say", async () => {
  const error = await refusal(() => importRows(place, [SWE_REBENCH_2], { dataset: "openswe" }));
  expect(error.message).toContain("eval_script is absent or empty");
});

test("a directory of tasks can be moved: nothing in it names its place", async () => {
  await importRows(place, ROWS);
  const moved = join(place.directory, "moved");
  cpSync(out(), moved, { recursive: true });
  for (const path of filesBelow(moved).filter((name) => !name.endsWith(".parquet")))
    expect(readFileSync(join(moved, path), "utf8")).not.toContain(place.directory);
  expect(readdirSync(moved)).toContain("index.parquet");
});
