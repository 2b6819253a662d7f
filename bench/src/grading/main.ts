/**
 * Owns the grading benchmark: megabytes of log a second of processor time (all threads) from file to verdict, ours and
 * the official Python graders in one run. Processor time, because a busy machine changes it less. Needs Python with the swebench package (MORTISE_SWEBENCH_PYTHON); without it ours is measured alone.
 *
 * usage: node bench/dist/grading/main.js [--mb 32] [--repeats 7] [--data DIRECTORY]
 */
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type GradingRecord, LogGrader, readRecord } from "@mortise/grading";
import { machine } from "../proxy/machine.js";
import { median, rounded } from "../proxy/statistics.js";
import { type GradingCase, realCases, syntheticCases } from "./corpus.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const DRIVER = join(root, "bench", "src", "grading", "official.py");
const piece = Buffer.alloc(262_144);
const WARM_ROUNDS = 30;
const MEGABYTE = 1_000_000;

const { values } = parseArgs({
  options: {
    mb: { type: "string", default: "32" },
    repeats: { type: "string", default: "7" },
    data: {
      type: "string",
      default: process.env.MORTISE_SWEBENCH_DATA ?? resolve(root, "../shared/data/swebench"),
    },
  },
});
const repeats = Number(values.repeats);

interface Timing {
  readonly seconds: readonly number[];
  readonly resolved: boolean;
}

/** From the file's bytes to the verdict, as the command does it. */
function gradeFile(record: GradingRecord, logFile: string): boolean {
  const grader = new LogGrader(record);
  const file = openSync(logFile, "r");
  for (let read = readSync(file, piece); read > 0; read = readSync(file, piece))
    grader.writeBytes(piece.subarray(0, read));
  closeSync(file);
  return grader.end().verdict === "resolved";
}

function timeOurs({ record, logFile }: GradingCase): Timing {
  const read = readRecord(record, "bench");
  let resolved = gradeFile(read, logFile);
  const seconds = Array.from({ length: repeats }, () => {
    const start = process.cpuUsage();
    resolved = gradeFile(read, logFile);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000_000;
  });
  return { seconds, resolved };
}

function timeOfficial(cases: readonly GradingCase[]): { version: string; timings: Timing[] } | undefined {
  const python = process.env.MORTISE_SWEBENCH_PYTHON ?? "python3";
  if (spawnSync(python, ["-c", "import swebench.harness.grading"]).status !== 0) return undefined;
  const input = cases
    .map(({ record, logFile }) => JSON.stringify({ record, log_file: logFile, repeats }))
    .join("\n");
  const { stdout, stderr, status } = spawnSync(python, [DRIVER], { input: `${input}\n`, encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  const [head, ...lines] = stdout.split("\n").filter((line) => line.startsWith("{"));
  const { swebench, python: version } = JSON.parse(head!);
  return {
    version: `swebench ${swebench}, Python ${version}`,
    timings: lines.map((line) => JSON.parse(line)),
  };
}

/** The cases of one name together: bytes over the median of the repeats' sums. */
function speed(cases: readonly GradingCase[], timings: readonly Timing[], name: string): number {
  const rows = cases.flatMap((one, at) => (one.name === name ? [{ one, timing: timings[at]! }] : []));
  const bytes = rows.reduce((sum, { one }) => sum + one.bytes, 0);
  const sums = Array.from({ length: repeats }, (_, at) =>
    rows.reduce((sum, { timing }) => sum + timing.seconds[at]!, 0),
  );
  return bytes / MEGABYTE / median(sums);
}

const directory = mkdtempSync(join(tmpdir(), "mortise-bench-"));
try {
  const cases = [...realCases(values.data), ...syntheticCases(directory, Number(values.mb) * MEGABYTE)];
  const before = machine();
  // Logs are graded by the thousand: compiled code is what is measured.
  for (let round = 0; round < WARM_ROUNDS; round += 1)
    for (const { record, logFile } of cases) gradeFile(readRecord(record, "bench"), logFile);
  const official = timeOfficial(cases);
  const ours = cases.map(timeOurs);
  const rows = [...new Set(cases.map(({ name }) => name))].map((name) => {
    const mbPerSecond = speed(cases, ours, name);
    const theirs = official === undefined ? undefined : speed(cases, official.timings, name);
    const factor =
      theirs === undefined ? {} : { official: rounded(theirs, 1), times: rounded(mbPerSecond / theirs, 1) };
    return { parser: name, ours: rounded(mbPerSecond, 1), ...factor };
  });
  const disagree =
    official === undefined
      ? 0
      : ours.filter(({ resolved }, at) => resolved !== official.timings[at]!.resolved).length;
  console.log(
    JSON.stringify(
      { machine: before, official: official?.version ?? "absent", repeats, disagree, rows },
      undefined,
      2,
    ),
  );
} finally {
  rmSync(directory, { recursive: true });
}
