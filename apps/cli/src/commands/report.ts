/**
 * Owns `mortise report`: what a run's trials came to, and one run against another. Reads only; of a run whose bus is
 * gone it reads the archive.
 */
import { type Command, Option } from "commander";
import { type OutputOptions, printResult } from "../output.js";
import type { RunPlace } from "../records/run-source.js";
import { behavioursOf } from "../report/behaviours.js";
import { comparisonLines, reportLines } from "../report/lines.js";
import { readRunHistory } from "../report/run-history.js";
import {
  compareRuns,
  compareWithin,
  type ReportedRun,
  type RunReport,
  reportedRun,
  runReport,
} from "../report/run-report.js";
import { FEWEST_TOKENS } from "../report/trial-facts.js";
import { collected } from "../tasks/arguments.js";

interface Flags {
  readonly checkpoint?: string;
  readonly site?: string;
  readonly archive?: string;
  readonly otherArchive?: string;
  readonly set?: string;
  readonly otherSet?: string;
  readonly score: string;
  readonly vary: readonly string[];
}

export function addReport(program: Command, output: () => OutputOptions): void {
  program
    .command("report <runId> [otherId]")
    .description(
      "what a run's trials came to: endings, solve rates, shapes, behaviour; with two, the second against the first",
    )
    .addOption(new Option("--site <file>", "site file of runs that are not quick starts").env("MORTISE_SITE"))
    .option("--archive <directory>", "read the run from this archive instead of the streams")
    .option("--other-archive <directory>", "the same for the other run; --archive when absent")
    .option(
      "--checkpoint <directory>",
      "tokenizer and template the captured ids are read with; the run's own when absent",
    )
    .option("--set <name>", "set of the run that is compared: training, or the name of an evaluation")
    .option("--other-set <name>", "set of the other run")
    .option(
      "--score <name>",
      `what chooses among attempts for best@n: ${FEWEST_TOKENS}, or a component of the verdicts`,
      FEWEST_TOKENS,
    )
    .option(
      "--vary <field>",
      "setting of the protocols that is meant to differ, such as shownTests; may be repeated",
      collected,
      [],
    )
    .action(async (runId: string, otherId: string | undefined, flags: Flags) => {
      const { site, archive, otherArchive = archive } = flags;
      const run = await open(runId, { site, archive }, flags);
      if (otherId === undefined) {
        const comparison = compareWithin(run);
        printResult(output(), { ...run.report, score: flags.score, comparison: comparison ?? null }, () => [
          ...reportLines(run.report),
          ...(comparison ? comparisonLines(comparison) : []),
        ]);
        return;
      }
      const other = await open(otherId, { site, archive: otherArchive }, flags);
      const comparison = compareRuns(run, other, { from: flags.set, to: flags.otherSet }, flags.vary);
      printResult(output(), { ...run.report, score: flags.score, other: other.report, comparison }, () => [
        ...reportLines(run.report),
        "",
        ...reportLines(other.report),
        ...comparisonLines(comparison),
      ]);
    });
}

async function open(
  runId: string,
  place: RunPlace,
  { score, checkpoint }: Flags,
): Promise<ReportedRun & { readonly report: RunReport }> {
  const run = reportedRun(await readRunHistory(runId, place), score);
  const behaviours = await behavioursOf(run.history, run.facts, checkpoint);
  return { ...run, report: runReport(run, behaviours) };
}
