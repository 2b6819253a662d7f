/**
 * Owns where the files of a quick start lie: those of a site of its own, and those of its run. Creates nothing.
 */
import { join } from "node:path";
import { type SitePaths, sitePaths } from "../site/files/site-paths.js";
import type { ProjectPaths } from "../site/project-paths.js";

export interface RunPaths extends SitePaths {
  readonly run: string;
  readonly checkpoint: string;
  readonly demonstrations: string;
  /** What the run was started with, for `--resume`. */
  readonly options: string;
  readonly summary: string;
}

export function runPaths(project: ProjectPaths, runId: string): RunPaths {
  const directory = join(project.runs, runId);
  const at = (name: string) => join(directory, name);
  return {
    ...sitePaths(directory),
    run: at("run.toml"),
    checkpoint: at("checkpoint"),
    demonstrations: at("demonstrations.jsonl"),
    options: at("options.json"),
    summary: at("summary.json"),
  };
}
