/**
 * Real logs with the official verdict: verdict and all four lists must be equal. They are data of others and lie
 * beside the project; MORTISE_SWEBENCH_DATA names another place. Where they are absent this says so.
 */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { gradeLog, readRecord } from "../src/index.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const data = process.env.MORTISE_SWEBENCH_DATA ?? resolve(root, "../shared/data/swebench");
const isPresent = existsSync(join(data, "records.jsonl"));

interface OfficialList {
  readonly success: readonly string[];
  readonly failure: readonly string[];
}
interface OfficialReport {
  readonly resolved: boolean;
  readonly tests_status: { readonly FAIL_TO_PASS: OfficialList; readonly PASS_TO_PASS: OfficialList };
}

function recordsWithLogs(): { instance_id: string }[] {
  if (!isPresent) return [];
  return readFileSync(join(data, "records.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { instance_id: string })
    .filter(({ instance_id }) => existsSync(join(data, "logs", instance_id, "report.json")));
}

const asOurs = ({ success, failure }: OfficialList) => ({ passed: success, failed: failure });

if (!isPresent) console.warn(`logs with official verdicts are absent: ${data} (set MORTISE_SWEBENCH_DATA)`);

describe.skipIf(!isPresent)("logs with official verdicts", () => {
  test("are there", () => expect(recordsWithLogs()).not.toEqual([]));

  test.each(recordsWithLogs())("$instance_id", (record) => {
    const directory = join(data, "logs", record.instance_id);
    const reports = JSON.parse(readFileSync(join(directory, "report.json"), "utf8"));
    const official = reports[record.instance_id] as OfficialReport;
    const log = readFileSync(join(directory, "test_output.txt"), "utf8");
    const grade = gradeLog(readRecord(record, "records.jsonl"), log);
    expect({ ...grade, parser: "", reasons: [] }).toEqual({
      instance: record.instance_id,
      verdict: official.resolved ? "resolved" : "unresolved",
      failToPass: asOurs(official.tests_status.FAIL_TO_PASS),
      passToPass: asOurs(official.tests_status.PASS_TO_PASS),
      parser: "",
      reasons: [],
    });
  });
});
