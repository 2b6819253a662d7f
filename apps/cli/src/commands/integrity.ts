/** Owns `mortise integrity`: attempts and incidence of each way to a reward that is not solving the task. */
import { type Command, Option } from "commander";
import { integrityLines, integrityOf } from "../integrity/integrity-report.js";
import { type OutputOptions, printResult } from "../output.js";
import type { RunPlace } from "../records/run-source.js";
import { withRun } from "../regrade/open-run.js";

export function addIntegrity(program: Command, output: () => OutputOptions): void {
  program
    .command("integrity <runId>")
    .description("what a run's trials show of cheating and of broken grading, by its way, and how they ended")
    .addOption(
      new Option("--site <file>", "site file of the run, if it is no quick start").env("MORTISE_SITE"),
    )
    .option("--archive <directory>", "read an archive instead of the bus")
    .action(async (run: string, place: RunPlace) => {
      await withRun(run, place, async ({ records }) => {
        const report = integrityOf(records);
        printResult(output(), report, () => integrityLines(report));
      });
    });
}
