/** `mortise grade`: one line of JSON, every shape of record and log file, and refusals that name the field. Uses dist. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { readRecord } from "@mortise/grading";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readLog } from "../src/grading/log-file.js";
import { readRecordFile } from "../src/grading/record-file.js";

const MAIN = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const record = {
  instance_id: "psf__requests-1",
  repo: "psf/requests",
  version: "1.1",
  FAIL_TO_PASS: '["t.py::b", "t.py::a"]',
  PASS_TO_PASS: '["t.py::c"]',
};
const log = [
  "+ : '>>>>> Start Test Output'",
  "PASSED t.py::a",
  "PASSED t.py::b",
  "FAILED t.py::c - boom",
  "+ : '>>>>> End Test Output'",
  "",
].join("\n");

let directory: string;
const at = (name: string) => join(directory, name);

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "mortise-grade-"));
  writeFileSync(at("record.json"), JSON.stringify(record));
  writeFileSync(
    at("records.jsonl"),
    `${JSON.stringify({ ...record, instance_id: "other" })}\r\n${JSON.stringify(record)}\n`,
  );
  writeFileSync(at("log.txt"), log);
  writeFileSync(at("log.txt.gz"), gzipSync(log));
  writeFileSync(at("damaged.gz"), gzipSync(log).subarray(0, 40));
  writeFileSync(
    at("crlf.txt"),
    Buffer.concat([Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from(log.replaceAll("\n", "\r\n"))]),
  );
});
afterAll(() => rmSync(directory, { recursive: true }));

function grade(recordPlace: string, logFile: string, ...flags: string[]) {
  const args = [MAIN, "grade", "--record", recordPlace, "--log", logFile, ...flags];
  return spawnSync(process.execPath, args, { encoding: "utf8" });
}

const graded = {
  schema: 1,
  instance: "psf__requests-1",
  verdict: "unresolved",
  failToPass: { passed: ["t.py::b", "t.py::a"], failed: [] },
  passToPass: { passed: [], failed: ["t.py::c"] },
  parser: "pytest-options/1",
  reasons: ["1 of 1 PASS_TO_PASS did not pass, first: t.py::c (failed)"],
};

describe("one line of JSON", () => {
  test.each([
    ["record.json", "log.txt"],
    ["records.jsonl:psf__requests-1", "log.txt.gz"],
    ["record.json:psf__requests-1", "crlf.txt"],
  ])("%s and %s", (recordName, logName) => {
    const { status, stdout } = grade(at(recordName), at(logName), "--json");
    expect(stdout).toBe(`${JSON.stringify(graded)}\n`);
    expect(status).toBe(0);
  });

  test("another parser may be named", () => {
    const { stdout } = grade(at("record.json"), at("log.txt"), "--json", "--parser", "parse_log_pytest_v2");
    expect(JSON.parse(stdout)).toMatchObject({ parser: "pytest-v2/1", verdict: "unresolved" });
  });
});

test("without --json a table that names what did not pass", () => {
  const { stdout } = grade(at("record.json"), at("log.txt"));
  expect(stdout).toContain("psf__requests-1: unresolved");
  expect(stdout).toContain("FAIL_TO_PASS  2 of 2 passed");
  expect(stdout).toContain("PASS_TO_PASS t.py::c");
});

describe("refusals", () => {
  const written = (name: string, value: unknown) => {
    writeFileSync(at(name), typeof value === "string" ? value : JSON.stringify(value));
    return at(name);
  };
  test.each<[string, () => string, string]>([
    ["an id that is not there", () => `${at("records.jsonl")}:nobody`, "--record"],
    ["several records", () => at("records.jsonl"), "--record"],
    ["no JSON", () => written("broken.json", "{"), "--record"],
    ["no record", () => written("text.json", '"text"'), "record"],
    ["no id", () => written("id.json", { ...record, instance_id: undefined }), "instance_id"],
    ["no list of names", () => written("list.json", { ...record, FAIL_TO_PASS: [1] }), "FAIL_TO_PASS"],
    ["an absent list", () => written("lists.json", { ...record, PASS_TO_PASS: undefined }), "PASS_TO_PASS"],
    ["an unknown repository", () => written("repo.json", { ...record, repo: "a/b" }), "repo"],
    [
      "an unknown parser",
      () => written("parser.json", { ...record, log_parser: "parse_log_x" }),
      "log_parser",
    ],
    ["an unknown evaluation", () => written("type.json", { ...record, eval_type: "x" }), "eval_type"],
  ])("%s", async (_, place, field) => {
    const reading = readRecordFile(place()).then(({ value, source }) => readRecord(value, source));
    await expect(reading).rejects.toMatchObject({ code: "MORTISE_TASK_RECORD", detail: { field } });
  });

  test("a directory for a log", async () => {
    await expect(readLog(directory, () => {})).rejects.toMatchObject({
      code: "MORTISE_OPERATOR_FILES",
      detail: { field: "--log" },
    });
  });

  test("a damaged log", async () => {
    const reading = readLog(at("damaged.gz"), () => {});
    await expect(reading).rejects.toMatchObject({
      code: "MORTISE_OPERATOR_FILES",
      detail: { field: "--log" },
    });
  });

  test("end with the operator's exit code, in words and as JSON", () => {
    const { status, stdout, stderr } = grade(at("record.json"), at("absent.txt"), "--json");
    expect(status).toBe(2);
    expect(stderr).toContain("MORTISE_OPERATOR_FILES");
    expect(JSON.parse(stdout).error.code).toBe("MORTISE_OPERATOR_FILES");
    const unknown = grade(written("repo.json", { ...record, repo: "a/b" }), at("log.txt"));
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toMatch(/MORTISE_TASK_RECORD \(repo\).*\n {2}fix: /);
  });
});
