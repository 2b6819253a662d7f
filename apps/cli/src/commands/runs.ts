/** Owns `mortise runs list`: the runs of this clone and how far each came. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Command } from "commander";
import { type ListedEvaluation, listedEvaluation } from "../evaluation/listed-evaluations.js";
import { type OutputOptions, printResult } from "../output.js";
import type { QuickstartOptions } from "../quickstart/recipe.js";
import { runPaths } from "../quickstart/run-directory.js";
import type { Summary } from "../quickstart/summary.js";
import { projectPaths } from "../site/project-paths.js";

interface ListedRun {
  readonly runId: string;
  readonly state: "finished" | "unfinished";
  readonly seed: number;
  readonly steps: number;
  readonly solveRate?: Summary["solveRate"];
}

export function addRuns(program: Command, output: () => OutputOptions): void {
  const runs = program.command("runs").description("the runs of this clone");
  runs
    .command("list")
    .description("list them, the newest last")
    .action(() => {
      const listed = listRuns();
      const evaluations = runIds().flatMap((runId) => listedEvaluation(runId) ?? []);
      const lines = [...listed.map(describe), ...evaluations.map(describeEvaluation)];
      printResult(output(), { runs: listed, evaluations }, () =>
        lines.length === 0 ? ["no runs yet"] : lines,
      );
    });
}

function runIds(): string[] {
  const { runs } = projectPaths();
  return existsSync(runs) ? readdirSync(runs).sort() : [];
}

function listRuns(): ListedRun[] {
  const project = projectPaths();
  return runIds().flatMap((runId): ListedRun[] => {
    const paths = runPaths(project, runId);
    if (!existsSync(paths.options)) return [];
    const { seed, steps } = JSON.parse(readFileSync(paths.options, "utf8")) as QuickstartOptions;
    if (!existsSync(paths.summary)) return [{ runId, state: "unfinished", seed, steps }];
    const { solveRate } = JSON.parse(readFileSync(paths.summary, "utf8")) as Summary;
    return [{ runId, state: "finished", seed, steps, solveRate }];
  });
}

function describeEvaluation({ runId, command, protocol, state, attempts }: ListedEvaluation): string {
  const counts =
    attempts === undefined
      ? ""
      : `  ${attempts.resolved} resolved of ${attempts.executed} executed of ${attempts.expected}`;
  return `${runId}  ${state}  ${command} under ${protocol}${counts}`;
}

function describe({ runId, state, seed, steps, solveRate }: ListedRun): string {
  const rates =
    solveRate === undefined
      ? ""
      : `  solve rate ${solveRate.before?.toFixed(3)} -> ${solveRate.after?.toFixed(3)}`;
  return `${runId}  ${state}  seed ${seed}  ${steps} steps${rates}`;
}
