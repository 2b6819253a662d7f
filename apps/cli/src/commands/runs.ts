/** Owns `mortise runs list`: the runs of this clone and how far each came. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Command } from "commander";
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
      printResult(output(), { runs: listed }, () =>
        listed.length === 0 ? ["no runs yet"] : listed.map(describe),
      );
    });
}

function listRuns(): ListedRun[] {
  const project = projectPaths();
  if (!existsSync(project.runs)) return [];
  return readdirSync(project.runs)
    .sort()
    .flatMap((runId): ListedRun[] => {
      const paths = runPaths(project, runId);
      if (!existsSync(paths.options)) return [];
      const { seed, steps } = JSON.parse(readFileSync(paths.options, "utf8")) as QuickstartOptions;
      if (!existsSync(paths.summary)) return [{ runId, state: "unfinished", seed, steps }];
      const { solveRate } = JSON.parse(readFileSync(paths.summary, "utf8")) as Summary;
      return [{ runId, state: "finished", seed, steps, solveRate }];
    });
}

function describe({ runId, state, seed, steps, solveRate }: ListedRun): string {
  const rates =
    solveRate === undefined
      ? ""
      : `  solve rate ${solveRate.before?.toFixed(3)} -> ${solveRate.after?.toFixed(3)}`;
  return `${runId}  ${state}  seed ${seed}  ${steps} steps${rates}`;
}
