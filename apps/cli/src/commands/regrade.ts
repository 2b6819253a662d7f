/**
 * Owns `mortise regrade`: the kept evidence of a run judged again by the graders of today, what that changes, and, when
 * asked to, a record of it beside the verdicts. No agent and no test is run.
 */
import { writeFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { MortiseError } from "@mortise/contracts";
import { type Command, Option } from "commander";
import { type OutputOptions, printResult } from "../output.js";
import type { RunPlace } from "../records/run-source.js";
import { applyRegrades } from "../regrade/apply.js";
import { type OpenedRun, withRun } from "../regrade/open-run.js";
import { consequencesOf } from "../regrade/reconcile.js";
import { type RegradedRun, type RegradedTrial, regradeRun } from "../regrade/regrade-run.js";
import {
  countsLine,
  isInfraFailed,
  OUTCOME_NAMES,
  outcomeCounts,
  standingVerdicts,
} from "../regrade/standing.js";
import { connectAs } from "../site-bus.js";

interface Flags extends RunPlace {
  readonly apply: boolean;
  readonly why?: string;
  readonly author?: string;
  readonly trials?: string;
}

export function addRegrade(program: Command, output: () => OutputOptions): void {
  program
    .command("regrade <runId>")
    .description("judge the kept evidence of a run again, with the graders of today; nothing is run")
    .addOption(
      new Option("--site <file>", "site file of the run, if it is no quick start").env("MORTISE_SITE"),
    )
    .option("--archive <directory>", "read an archive instead of the bus")
    .option("--apply", "record what differs beside the verdicts; needs --why and the bus", false)
    .option("--why <text>", "reason, kept with what --apply records")
    .option("--author <name>", "who it is, kept with what --apply records; this user when absent")
    .option("--trials <file>", "write one JSON line a trial, without those whose machinery failed")
    .action(async (run: string, flags: Flags) => {
      const audit = auditOf(flags);
      await withRun(run, flags, async (opened) => {
        const regraded = await regradeRun(opened.records, opened.site.tasks.directory);
        const written = audit === undefined ? undefined : await apply(opened, regraded, audit);
        if (flags.trials !== undefined) writeFileSync(flags.trials, trialLines(opened, regraded));
        report(opened, regraded, written, output());
      });
    });
}

function auditOf({ apply: isApplied, why, author }: Flags) {
  if (!isApplied) return undefined;
  if (why === undefined || why.trim() === "")
    throw new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: "--apply is given without --why.",
      fix: "Say why the run is graded again, for example --why 'pytest parser 2 reads xdist lines'.",
      detail: { field: "--why" },
    });
  return { author: author ?? `${userInfo().username}@${hostname()}`, why, atMs: Date.now() };
}

async function apply(
  { site, records, source }: OpenedRun,
  { trials }: RegradedRun,
  audit: NonNullable<ReturnType<typeof auditOf>>,
): Promise<number> {
  if (source === "archive")
    throw new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: `The bus of run ${records.run} does not answer: what is archived cannot be added to.`,
      fix: "Start the bus of the run, or leave --apply away.",
      detail: { field: "--apply" },
    });
  const bus = await connectAs(site, "admin");
  try {
    return await applyRegrades(bus, records, trials, audit);
  } finally {
    await bus.close();
  }
}

/** Rows as `tasks index --solve-rates` reads them. */
function trialLines({ records }: OpenedRun, { trials }: RegradedRun): string {
  const after = new Map([
    ...standingVerdicts(records),
    ...trials.map(({ trial, after }) => [trial, after] as const),
  ]);
  return [...records.trials]
    .filter(([trial]) => after.has(trial) && !isInfraFailed(trial, records, after))
    .map(([trial, { task, group, evaluation }]) => {
      const { outcome, reward, grader } = after.get(trial)!;
      const row = {
        task: task?.id,
        trial,
        group,
        evaluation,
        outcome: OUTCOME_NAMES[outcome],
        reward,
        grader,
      };
      return `${JSON.stringify(row)}\n`;
    })
    .join("");
}

function report(
  { records, source }: OpenedRun,
  { trials, skipped }: RegradedRun,
  written: number | undefined,
  output: OutputOptions,
): void {
  const changes = trials.filter(({ isChanged }) => isChanged);
  const refined = trials.filter(({ isRefined }) => isRefined);
  const consequences = consequencesOf(records, trials);
  const result = {
    runId: records.run,
    source,
    verdicts: records.verdicts.size,
    regraded: trials.length,
    changed: changes.length,
    refined: refined.length,
    ...(written === undefined ? {} : { written }),
    before: outcomeCounts(trials.map(({ before }) => before)),
    after: outcomeCounts(trials.map(({ after }) => after)),
    graders: gradersOf(trials),
    changes: changes.map(changeOf),
    consequences,
    skipped,
  };
  printResult(output, result, () => [
    ...changes.map((trial) => `${trial.trial}  ${trial.task}  ${lineOf(trial)}`),
    ...skipped.map(({ trial, reason }) => `${trial}  not graded again: ${reason}`),
    `${trials.length} of ${records.verdicts.size} verdicts of ${records.run} graded again (${source}): ${changes.length} changed, ${refined.length} the same by another parser or with other results of single tests`,
    `before  ${countsLine(result.before)}`,
    `after   ${countsLine(result.after)}`,
    ...Object.entries(result.graders).map(([graders, count]) => `grader  ${graders}: ${count}`),
    ...consequences.map(({ sentence }) => sentence),
    ...(written === undefined
      ? changes.length + refined.length === 0
        ? []
        : ["nothing is recorded; --apply --why <text> records it beside the verdicts"]
      : [`${written} recorded`]),
  ]);
}

function changeOf({ trial, task, before, after }: RegradedTrial) {
  const of = ({ outcome, reward, grader, reason }: RegradedTrial["before"]) => ({
    outcome: OUTCOME_NAMES[outcome],
    reward: reward ?? null,
    grader,
    reason,
  });
  return { trial, task, before: of(before), after: of(after) };
}

function lineOf({ before, after }: RegradedTrial): string {
  const verdict = `${OUTCOME_NAMES[before.outcome]} -> ${OUTCOME_NAMES[after.outcome]}`;
  return `${verdict}  (${before.grader} -> ${after.grader}: ${after.reason})`;
}

function gradersOf(trials: readonly RegradedTrial[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { before, after } of trials) {
    const name = before.grader === after.grader ? after.grader : `${before.grader} -> ${after.grader}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
