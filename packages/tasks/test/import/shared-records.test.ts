/**
 * Real SWE-bench records: every one is imported, loaded and graded by itself, and its test command is the one the
 * official harness ran. The logs of that harness are graded from the imported directories. They are data of others and lie beside the project; MORTISE_SWEBENCH_DATA names another
 * place. Where they are absent this says so.
 */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { readRecord } from "@mortise/grading";
import { describe, expect, test } from "vitest";
import { gradeTaskLog, listTaskIds, loadIndexedTask, readTaskIndex } from "../../src/index.js";
import { readIndex } from "../../src/selection/index.js";
import { importFile, workplace } from "./workplace.js";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const data = process.env.MORTISE_SWEBENCH_DATA ?? resolve(root, "../shared/data/swebench");
const records = join(data, "records.jsonl");
const isPresent = existsSync(records);

const ENDED = { exitCode: 0, signal: "", timedOut: false, outOfMemory: false, outputTruncated: false };

/** The lines `set -x` shows of what stood between the marks, without those of what was run. */
function officialCommand(log: string): string | undefined {
  const [, behind = ""] = log.split("+ : '>>>>> Start Test Output'\n");
  return behind
    .split("\n")
    .filter((line) => line.startsWith("+ "))
    .map((line) => line.slice(2))
    .find((line) => !line.startsWith("PYTHONWARNINGS="));
}

describe.skipIf(!isPresent)(
  `real records${isPresent ? "" : ` (absent: ${data}; set MORTISE_SWEBENCH_DATA)`}`,
  () => {
    const place = workplace();

    test("are imported whole, run by the commands of the official harness, graded as it grades", async () => {
      const out = join(place.directory, "out");
      const rows = readFileSync(records, "utf8")
        .split("\n")
        .filter((line) => line !== "");
      const report = await importFile(records, out, { split: "test" });
      expect(report).toMatchObject({
        rows: rows.length,
        datasets: { "swe-bench": rows.length },
        written: rows.length,
        refused: [],
        repairs: [],
        unknownColumns: [],
      });
      expect(listTaskIds(out)).toHaveLength(rows.length);
      expect(await readIndex(out)).toHaveLength(rows.length);
      for (const entry of readTaskIndex(out)) {
        const task = loadIndexedTask(out, entry);
        const record = JSON.parse(rows.find((row) => row.includes(`"instance_id": "${entry.id}"`))!);
        const graded = readRecord(record, entry.id);
        const own = JSON.parse(readFileSync(join(task.tests.directory, "config.json"), "utf8"));
        expect(readRecord(own, entry.id)).toMatchObject({
          failToPass: [...new Set(graded.failToPass)],
          parser: graded.parser,
        });
        expect(task).toMatchObject({
          warnings: [],
          instruction: expect.stringContaining(record.problem_statement),
          metadata: { repo: record.repo, base_commit: record.base_commit, version: record.version },
          tests: { expected: { format: "log", parser: graded.parser.name } },
        });
        expect(readFileSync(task.solution!.patch!, "utf8")).toBe(record.patch);
        const log = join(data, "logs", entry.id, "test_output.txt");
        const { expected } = task.tests;
        if (expected?.format !== "log") throw new Error(`${entry.id} has no log to grade`);
        const report = JSON.parse(readFileSync(join(data, "logs", entry.id, "report.json"), "utf8"));
        const outcome = report[entry.id].resolved ? "resolved" : "unresolved";
        expect(gradeTaskLog(task, expected, { ...ENDED, stdout: readFileSync(log) })).toMatchObject({
          outcome,
        });
        const script = readFileSync(join(task.tests.directory, "eval.sh"), "utf8");
        const command = officialCommand(readFileSync(log, "utf8"));
        expect(script.replaceAll(/^PYTHONWARNINGS='[^']*' /gm, "")).toContain(`\n${command}\ncode=$?\n`);
      }
    });

    test("are the same bytes every time", async () => {
      await importFile(records, join(place.directory, "out"));
      expect(await importFile(records, join(place.directory, "out"))).toMatchObject({
        written: 0,
        replaced: 0,
      });
    });
  },
);
