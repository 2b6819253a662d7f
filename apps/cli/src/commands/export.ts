/**
 * Owns `mortise export`: trials of a run as ATIF trajectories, or their training rows as JSON lines or parquet; with
 * `--only resolved --at-most K` the successes that rejection-sampling fine-tuning takes. Reads the run, writes one place.
 */
import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { atifTrajectory } from "../export/atif.js";
import { type ExportedTrial, exportedTrials } from "../export/exported-trial.js";
import { selectTrials, VERDICT_RULES, type VerdictRule } from "../export/selection.js";
import { jsonLines, parquetFile, sequenceRows } from "../export/sequence-rows.js";
import { refuseExisting, writeDirectoryWhole, writeFileWhole } from "../export/write-export.js";
import { note, type OutputOptions, printResult } from "../output.js";
import type { PolicyText } from "../report/policy-text.js";
import { readRunHistory } from "../report/run-history.js";
import { runText } from "../report/run-text.js";
import { trialFacts } from "../report/trial-facts.js";

const FORMATS = ["atif", "jsonl", "parquet"] as const;
type Format = (typeof FORMATS)[number];

interface Flags {
  readonly format: Format;
  readonly out?: string;
  readonly set?: string;
  readonly only: VerdictRule;
  readonly atMost?: number;
  readonly site?: string;
  readonly archive?: string;
  readonly checkpoint?: string;
}

export function addExport(program: Command, output: () => OutputOptions): void {
  program
    .command("export <runId>")
    .description("trials of a run as ATIF trajectories, or their training rows as JSON lines or parquet")
    .addOption(new Option("--format <format>", "what to write").choices([...FORMATS]).makeOptionMandatory())
    .option("--out <path>", "a directory for atif, a file for the others; named after the run when absent")
    .option("--set <name>", "of this set only: training, or the name of an evaluation")
    .addOption(
      new Option("--only <rule>", "by verdict; counted: resolved and unresolved; all: lost trials too")
        .choices([...VERDICT_RULES])
        .default("counted"),
    )
    .option("--at-most <count>", "of one task, chosen always alike", positive)
    .addOption(
      new Option("--site <file>", "site file of a run that is not a quick start").env("MORTISE_SITE"),
    )
    .option("--archive <directory>", "read the run from this archive instead of the streams")
    .option(
      "--checkpoint <directory>",
      "tokenizer and template the captured ids are read with; the run's own when absent",
    )
    .action(async (runId: string, flags: Flags) => {
      const out = resolve(flags.out ?? defaultOut(runId, flags.format));
      refuseExisting(out);
      const history = await readRunHistory(runId, flags);
      const text = await runText(history, flags.checkpoint);
      const wanted = selectTrials(trialFacts(history), flags);
      const { trials, leftOut } = exportedTrials(history, wanted, text);
      const sequences = await write(out, flags.format, trials, text);
      for (const { trial, reason } of leftOut) note(`left out ${trial}: ${reason}`);
      const tasks = new Set(trials.map(({ fact }) => fact.task)).size;
      const result = {
        run: runId,
        format: flags.format,
        out,
        trials: trials.length,
        tasks,
        sequences,
        leftOut,
      };
      printResult(output(), result, () => [
        `${trials.length} trials of ${tasks} tasks${sequences === null ? "" : `, ${sequences} sequences`}: ${out}`,
        ...(leftOut.length === 0 ? [] : [`${leftOut.length} trials were left out`]),
      ]);
    });
}

function defaultOut(runId: string, format: Format): string {
  return format === "atif" ? `${runId}-atif` : `${runId}.${format}`;
}

/** @returns how many rows were written; null for a format without rows */
async function write(
  out: string,
  format: Format,
  trials: readonly ExportedTrial[],
  text: PolicyText,
): Promise<number | null> {
  if (format === "atif") {
    await writeDirectoryWhole(out, atifFiles(trials, text));
    return null;
  }
  const rows = sequenceRows(trials);
  await writeFileWhole(out, format === "jsonl" ? jsonLines(rows) : parquetFile(rows));
  return rows.length;
}

/** One at a time: a document of a long trial is large. */
function* atifFiles(
  trials: readonly ExportedTrial[],
  text: PolicyText,
): Generator<readonly [string, string]> {
  for (const trial of trials)
    yield [`${trial.fact.trial}.json`, `${JSON.stringify(atifTrajectory(trial, text))}\n`] as const;
}

function positive(value: string): number {
  const count = Number(value);
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError("It must be 1 or more.");
  return count;
}
