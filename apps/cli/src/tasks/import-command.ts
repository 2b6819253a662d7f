/** Owns `mortise tasks import`: a source, where it goes, and the report. The importing is packages/tasks'. */
import { resolve } from "node:path";
import {
  DATASETS,
  type DatasetName,
  DEFAULT_LIMITS,
  describeProblem,
  type ImportReport,
  importTasks,
  joined,
  openRows,
  type RowSource,
} from "@mortise/tasks/import";
import { type Command, Option } from "commander";
import { note, type OutputOptions, printResult } from "../output.js";
import { count, positive } from "./arguments.js";
import { fetchFromHub, hubReference } from "./hugging-face.js";

interface ImportFlags {
  readonly out: string;
  readonly format?: DatasetName;
  readonly split: string;
  readonly skipInvalid: boolean;
  readonly replace: boolean;
  readonly allowExitCode: boolean;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly storageMb: number;
  readonly agentTimeout: number;
  readonly verifierTimeout: number;
}

/** Rows between two lines of progress: some seconds. */
const ROWS_A_LINE = 1000;
/** Repairs told in words; the JSON result has all of them. */
const SHOWN_REPAIRS = 10;

export function addTasksImport(tasks: Command, output: () => OutputOptions): void {
  tasks
    .command("import <source>")
    .description(
      "turn records of a data set into task directories: a JSON, JSONL or parquet file, a directory of them, or hf:owner/name@revision[:split]",
    )
    .requiredOption("--out <directory>", "where the task directories and their index go")
    .addOption(new Option("--format <name>", "the data set, where its columns do not tell").choices(DATASETS))
    .option("--split <name>", "split of the tasks in the index", "train")
    .option("--skip-invalid", "leave out records that cannot be used, instead of importing none", false)
    .option("--replace", "write directories anew that are there with other content", false)
    .option(
      "--allow-exit-code",
      "take records that are graded by an exit code alone, which code can forge",
      false,
    )
    .option("--cpus <n>", "processors of a task", positive, DEFAULT_LIMITS.cpus)
    .option("--memory-mb <n>", "memory of a task", count, DEFAULT_LIMITS.memoryMb)
    .option("--storage-mb <n>", "disk of a task", count, DEFAULT_LIMITS.storageMb)
    .option("--agent-timeout <seconds>", "time of the agent", positive, DEFAULT_LIMITS.agentTimeoutSec)
    .option("--verifier-timeout <seconds>", "time of the tests", positive, DEFAULT_LIMITS.verifierTimeoutSec)
    .action(async (source: string, flags: ImportFlags) => {
      const directory = resolve(flags.out);
      const { rows, commit } = await rowsOf(source);
      const report = await importTasks(rows, directory, {
        ...(flags.format === undefined ? {} : { dataset: flags.format }),
        split: flags.split,
        skipInvalid: flags.skipInvalid,
        replace: flags.replace,
        allowExitCode: flags.allowExitCode,
        onRow: (stage, rows) => {
          if (rows % ROWS_A_LINE === 0) note(`${rows} rows ${stage}`);
        },
        limits: {
          cpus: flags.cpus,
          memoryMb: flags.memoryMb,
          storageMb: flags.storageMb,
          agentTimeoutSec: flags.agentTimeout,
          verifierTimeoutSec: flags.verifierTimeout,
        },
      });
      const origin = { source, ...(commit === undefined ? {} : { commit }) };
      printResult(output(), { ...origin, directory, ...report }, () => lines(directory, report));
    });
}

async function rowsOf(source: string): Promise<{ rows: RowSource; commit?: string }> {
  const reference = hubReference(source);
  if (reference === undefined) return { rows: await openRows(resolve(source)) };
  const { commit, paths } = await fetchFromHub(reference, note);
  const files = await Promise.all(paths.map((path) => openRows(path)));
  return { rows: joined(source, files), commit };
}

function lines(directory: string, report: ImportReport): string[] {
  const { written, kept, replaced, repeated, refused, repairs, unknownColumns } = report;
  const datasets = Object.entries(report.datasets).map(([name, tasks]) => `${tasks} of ${name}`);
  const more = repairs.length - SHOWN_REPAIRS;
  return [
    ...repairs
      .slice(0, SHOWN_REPAIRS)
      .map(({ place, instance, field, what }) => `mended   ${place} (${instance}): ${field} ${what}`),
    ...(more > 0 ? [`mended   and ${more} more; --json lists all`] : []),
    ...refused.map((problem) => `left out ${describeProblem(problem)}`),
    ...(unknownColumns.length === 0 ? [] : [`not read: ${unknownColumns.join(", ")}`]),
    `${report.rows} rows: ${datasets.join(", ")}${repeated === 0 ? "" : `, ${repeated} repeated`}`,
    `${written} written, ${kept} kept, ${replaced} replaced in ${directory}`,
  ];
}
