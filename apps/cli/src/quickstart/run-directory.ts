/**
 * Owns where the files of a run and of the project lie. Nothing else in the CLI joins these paths.
 * Creates nothing.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The clone: dist/quickstart/ is four levels below it. */
export const projectRoot = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..", "..");

export interface ProjectPaths {
  readonly root: string;
  /** Everything Mortise writes, outside version control. */
  readonly state: string;
  readonly cache: string;
  readonly runs: string;
  /** Generated task directories, by digest of their plan. */
  readonly tasks: string;
}

export function projectPaths(root: string = projectRoot): ProjectPaths {
  const state = join(root, ".mortise");
  return { root, state, cache: join(state, "cache"), runs: join(state, "runs"), tasks: join(state, "tasks") };
}

export interface RunPaths {
  readonly directory: string;
  readonly site: string;
  readonly run: string;
  readonly identity: string;
  readonly logs: string;
  readonly natsConfig: string;
  readonly natsPorts: string;
  readonly jetstream: string;
  /** State of the services: checkpoints, sandboxes, caches. */
  readonly state: string;
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
    directory,
    site: at("site.toml"),
    run: at("run.toml"),
    identity: at("identity"),
    logs: at("logs"),
    natsConfig: at("nats.conf"),
    natsPorts: at("ports"),
    jetstream: at("jetstream"),
    state: at("state"),
    checkpoint: at("checkpoint"),
    demonstrations: at("demonstrations.jsonl"),
    options: at("options.json"),
    summary: at("summary.json"),
  };
}
