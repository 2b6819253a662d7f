/** Owns asking the official graders: a Python process with the swebench package, one for many cases. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SyntheticCase } from "./synthetic-case.js";

const DRIVER = join(import.meta.dirname, "official.py");
const MAX_REPLY_BYTES = 512 * 1024 * 1024;

export interface OfficialList {
  readonly success: readonly string[];
  readonly failure: readonly string[];
}
export interface OfficialReport {
  readonly resolved: boolean;
  readonly found: boolean;
  readonly FAIL_TO_PASS: OfficialList;
  readonly PASS_TO_PASS: OfficialList;
  /** It threw instead of grading. */
  readonly error?: string;
}
export interface OfficialGrades {
  readonly version: string;
  readonly reports: readonly OfficialReport[];
}

/** The interpreters to compare with, from MORTISE_SWEBENCH_PYTHON (several, separated by colons) or python3. */
export function interpreters(): readonly string[] {
  return (process.env.MORTISE_SWEBENCH_PYTHON ?? "python3").split(":");
}

/** Whether an interpreter has the package; says so where it has not. */
export function hasSwebench(python: string): boolean {
  const isPresent = spawnSync(python, ["-c", "import swebench.harness.grading"]).status === 0;
  if (!isPresent)
    console.warn(`${python} has no swebench package: nothing is compared (set MORTISE_SWEBENCH_PYTHON)`);
  return isPresent;
}

export function gradeOfficially(python: string, cases: readonly SyntheticCase[]): OfficialGrades {
  const directory = mkdtempSync(join(tmpdir(), "mortise-parity-"));
  try {
    const input = cases.map((one, at) => {
      const log_file = join(directory, `${at}.txt`);
      writeFileSync(log_file, one.log);
      const { id: instance_id, repo, version, logParser: log_parser } = one;
      const lists = { FAIL_TO_PASS: one.failToPass, PASS_TO_PASS: one.passToPass };
      return JSON.stringify({ instance_id, repo, version, log_parser, log_file, ...lists });
    });
    const { version, replies } = ask(python, input);
    return { version, reports: replies as OfficialReport[] };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

export interface ParserQuestion {
  readonly parser: string;
  readonly log: string;
  readonly spec: { readonly instance_id: string; readonly version: string };
}

/** The maps the official parsers make of logs, in the words of the package (`PASSED`, …). */
export function parseOfficially(
  python: string,
  questions: readonly ParserQuestion[],
): Record<string, string>[] {
  return ask(
    python,
    questions.map((question) => JSON.stringify(question)),
  ).replies as Record<string, string>[];
}

/** One process, one reply a line. */
function ask(python: string, input: readonly string[]): { version: string; replies: unknown[] } {
  const { stdout, stderr, status } = spawnSync(python, [DRIVER], {
    input: `${input.join("\n")}\n`,
    encoding: "utf8",
    maxBuffer: MAX_REPLY_BYTES,
  });
  if (status !== 0) throw new Error(`${python} failed: ${stderr}`);
  // Parsers of the package print warnings between the replies.
  const [head, ...replies] = stdout.split("\n").filter((line) => line.startsWith("{"));
  return { version: JSON.parse(head!).swebench, replies: replies.map((line) => JSON.parse(line)) };
}
