/** Owns `mortise tasks index`: which rules a command line asks for, the funnel, and the new index. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { MortiseError } from "@mortise/contracts";
import {
  atMostPerRepository,
  createdBetween,
  type DisjointLevel,
  type DisjointProof,
  type FunnelStep,
  type IndexedTask,
  namesToExclude,
  ofLanguages,
  placedBelow,
  proveDisjoint,
  type Range,
  type Rule,
  readExclusions,
  readIdentities,
  readSolveRates,
  sampleOf,
  select,
  unionOf,
  weighted,
  within,
  without,
  withoutRepeats,
  withSolveRates,
  writeIndex,
} from "@mortise/tasks/selection";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type OutputOptions, printResult } from "../output.js";
import { withRun } from "../regrade/open-run.js";
import { infraFailedTasks } from "../regrade/standing.js";
import { collected, count, day, list, range, taskSource } from "./arguments.js";
import { funnelTable } from "./funnel-table.js";

interface IndexFlags {
  readonly exclude: readonly string[];
  readonly excludeSet: readonly string[];
  readonly excludeInfra: readonly string[];
  readonly site?: string;
  readonly language?: ReadonlySet<string>;
  readonly createdFrom?: string;
  readonly createdBefore?: string;
  readonly patchLines?: Range;
  readonly patchFiles?: Range;
  readonly instructionLength?: Range;
  readonly solveRate?: Range;
  readonly solveRates?: string;
  readonly perRepository?: number;
  readonly sample?: number;
  readonly seed: number;
  readonly disjointFrom: readonly string[];
  readonly disjointLevel: DisjointLevel;
  readonly out?: string;
  readonly split?: string;
  readonly replace: boolean;
}

export function addTasksIndex(tasks: Command, output: () => OutputOptions): void {
  tasks
    .command("index <sources...>")
    .description(
      "choose tasks of one or more indexes (directory, JSONL or parquet; =WEIGHT behind one sets how often it is drawn), print how many each rule dropped, write the index of the rest",
    )
    .option("--exclude <file>", "names of tasks, instances or repositories, one a line", collected, [])
    .option(
      "--exclude-set <index>",
      "leave out what an evaluation set has, as --disjoint-level says",
      collected,
      [],
    )
    .option(
      "--exclude-infra <run>",
      "leave out tasks at which every trial of a run failed for its machinery",
      collected,
      [],
    )
    .addOption(
      new Option(
        "--site <file>",
        "site file of the runs of --exclude-infra, if they are no quick starts",
      ).env("MORTISE_SITE"),
    )
    .option("--language <names>", "languages to keep, separated by commas", list)
    .option("--created-from <date>", "drop what is older", day)
    .option("--created-before <date>", "drop what is of that day or newer", day)
    .option("--patch-lines <range>", "lines the repair adds and removes: a..b, a.. or ..b", range)
    .option("--patch-files <range>", "files the repair changes", range)
    .option("--instruction-length <range>", "characters of the instruction", range)
    .option("--solve-rates <file>", "what an inference or a validation measured")
    .option("--solve-rate <range>", "difficulty band: share of trials that resolved, 0..1", range)
    .option("--per-repository <n>", "at most so many tasks of one repository", count)
    .option("--sample <n>", "at most so many tasks, drawn by their weights", count)
    .option("--seed <n>", "seed of what is drawn", count, 1)
    .option(
      "--disjoint-from <index>",
      "fail unless nothing is in common with this evaluation set",
      collected,
      [],
    )
    .addOption(
      new Option("--disjoint-level <level>", "what must not be in common")
        .choices(["repository", "instance"])
        .default("repository"),
    )
    .option("--out <directory>", "where index.jsonl, index.parquet and index.json go")
    .option("--split <name>", "split of the tasks in the new index, instead of their own")
    .option("--replace", "write over an index that is there", false)
    .action(async (sources: readonly string[], flags: IndexFlags) => {
      const result = await chosen(sources, flags);
      const { funnel, proofs, tasks: left } = result;
      if (left.length === 0) throw nothingLeft(funnel);
      const index = flags.out === undefined ? [] : written(resolve(flags.out), left, flags);
      const repositories = new Set(left.map(({ repository }) => repository?.toLowerCase())).size;
      printResult(output(), { tasks: left.length, repositories, funnel, disjoint: proofs, index }, () => [
        ...funnelTable(funnel),
        ...proofs.flatMap(proofLines),
        `${left.length} tasks of ${repositories} repositories${index.length === 0 ? "" : ` in ${resolve(flags.out!)}`}`,
      ]);
    });
}

interface Chosen {
  readonly tasks: readonly IndexedTask[];
  readonly funnel: readonly FunnelStep[];
  readonly proofs: readonly DisjointProof[];
}

async function chosen(sources: readonly string[], flags: IndexFlags): Promise<Chosen> {
  if (flags.solveRate !== undefined && (flags.solveRate.max ?? 0) > 1)
    throw new InvalidArgumentError("option '--solve-rate <range>' is a share: 0..1.");
  const union = await unionOf(sources.map(taskSource));
  const rates = flags.solveRates === undefined ? undefined : await readSolveRates(flags.solveRates);
  const all = rates === undefined ? union.tasks : withSolveRates(union.tasks, rates);
  const filtered = select(all, await filtersOf(flags));
  const drawn = select(
    weighted(filtered.tasks, union),
    flags.sample === undefined ? [] : [sampleOf(flags.sample, flags.seed)],
  );
  const proofs: DisjointProof[] = [];
  if (drawn.tasks.length > 0)
    for (const path of flags.disjointFrom)
      proofs.push(proveDisjoint(drawn.tasks, await readIdentities(path), path, flags.disjointLevel));
  const first: FunnelStep = { rule: "sources", dropped: 0, unknown: 0, left: all.length };
  return { tasks: drawn.tasks, funnel: [first, ...filtered.funnel, ...drawn.funnel], proofs };
}

/** In the order they are applied: what is not wanted at all, then size and difficulty, then diversity. */
async function filtersOf(flags: IndexFlags): Promise<Rule[]> {
  const rules: Rule[] = [withoutRepeats()];
  for (const path of flags.exclude) rules.push(without(`in ${path}`, readExclusions(path)));
  for (const path of flags.excludeSet)
    rules.push(without(`of ${path}`, namesToExclude(await readIdentities(path), flags.disjointLevel)));
  const place = flags.site === undefined ? {} : { site: flags.site };
  for (const run of flags.excludeInfra) {
    const names = await withRun(run, place, async ({ records }) => infraFailedTasks(records));
    rules.push(without(`infra-failed in ${run}`, new Set([...names].map((name) => name.toLowerCase()))));
  }
  if (flags.language !== undefined) rules.push(ofLanguages(flags.language));
  if (flags.createdFrom !== undefined || flags.createdBefore !== undefined)
    rules.push(createdBetween(flags.createdFrom, flags.createdBefore));
  const ranges: readonly (readonly [string, Range | undefined, (task: IndexedTask) => number | undefined])[] =
    [
      ["patch lines", flags.patchLines, ({ patchLines }) => patchLines],
      ["patch files", flags.patchFiles, ({ patchFiles }) => patchFiles],
      [
        "instruction length",
        flags.instructionLength,
        ({ prompt }) => prompt.reduce((sum, { content }) => sum + content.length, 0),
      ],
      ["solve rate", flags.solveRate, ({ solveRate }) => solveRate],
    ];
  for (const [name, bounds, measure] of ranges)
    if (bounds !== undefined) rules.push(within(name, bounds, measure));
  if (flags.perRepository !== undefined) rules.push(atMostPerRepository(flags.perRepository, flags.seed));
  return rules;
}

function written(directory: string, tasks: readonly IndexedTask[], { split, replace }: IndexFlags): string[] {
  const there = ["index.jsonl", "index.parquet", "index.json"].find((name) =>
    existsSync(join(directory, name)),
  );
  if (there !== undefined && !replace)
    throw new MortiseError({
      code: "MORTISE_TASK_EXISTS",
      message: `${directory}: ${there}.`,
      detail: { path: directory },
    });
  const placed = placedBelow(directory, tasks);
  return writeIndex(
    directory,
    split === undefined ? placed : placed.map((task) => ({ ...task, split })),
    "train",
  );
}

function proofLines(proof: DisjointProof): string[] {
  const { against, level, repositories, otherRepositories, tasks, otherTasks, sameNames } = proof;
  const both = level === "repository" ? "no repository and no instance" : "no instance";
  return [
    `disjoint from ${against}: ${both} in common (${tasks} tasks of ${repositories} repositories, ${otherTasks} of ${otherRepositories})`,
    `  compared ${proof.digest.slice(0, 16)} with ${proof.otherDigest.slice(0, 16)}`,
    ...sameNames.map((names) => `  one name, two owners: ${names}`),
  ];
}

function nothingLeft(funnel: readonly FunnelStep[]): MortiseError {
  const last = funnel.find(({ left }) => left === 0)!;
  return new MortiseError({
    code: "MORTISE_TASK_SOURCE",
    message: `no task is left after "${last.rule}", which dropped ${last.dropped}.`,
    fix: "Widen that rule, or add sources.",
    detail: { field: last.rule },
  });
}
