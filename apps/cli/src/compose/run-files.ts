/**
 * Owns what one run of a cluster starts from: tasks, demonstrations, initial policy, run file, all as the quick
 * start makes them. Does not own identities or addresses (cluster-files.ts).
 *
 * P3  A run keeps the options it was made with: other options for the same id are refused, not half applied.
 * P4  The tasks belong to the cluster: every run of it has the same seed, since running services hold them.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError, subjectToken } from "@mortise/contracts";
import { stringify } from "smol-toml";
import { writePrivate } from "../provision/identity.js";
import { preparePolicy } from "../quickstart/prepare-policy.js";
import { prepareTasks } from "../quickstart/prepare-tasks.js";
import { type QuickstartOptions, quickstartRun } from "../quickstart/recipe.js";

export interface PreparedRun {
  /** Directory of the run below the shared one. */
  readonly directory: string;
  readonly tasksDirectory: string;
  readonly isNew: boolean;
}

/** Makes or finds the run. @throws MORTISE_OPERATOR_RUN_EXISTS when it was made with other options (P3, P4). */
export async function prepareRun(shared: string, options: QuickstartOptions): Promise<PreparedRun> {
  const directory = join(shared, "runs", subjectToken("run", options.runId));
  const optionsFile = join(directory, "options.json");
  await assertSame(join(shared, "cluster.json"), { seed: options.seed }, "this cluster");
  await assertSame(optionsFile, options, `run ${options.runId}`);
  const isNew = !existsSync(optionsFile);

  await mkdir(directory, { recursive: true, mode: 0o700 });
  const tasks = await prepareTasks(join(shared, "tasks"), options.seed);
  const places = {
    checkpoint: join(directory, "checkpoint"),
    demonstrations: join(directory, "demonstrations.jsonl"),
  };
  await preparePolicy(places, tasks.train, options.seed);
  await writePrivate(join(directory, "run.toml"), stringify(quickstartRun(options, places)));
  await writePrivate(join(shared, "cluster.json"), JSON.stringify({ seed: options.seed }));
  await writePrivate(optionsFile, JSON.stringify(options));
  return { directory, tasksDirectory: tasks.directory, isNew };
}

async function assertSame(file: string, wanted: object, what: string): Promise<void> {
  if (!existsSync(file)) return;
  const kept = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  for (const [field, value] of Object.entries(wanted)) {
    if (JSON.stringify(kept[field]) === JSON.stringify(value)) continue;
    throw new MortiseError({
      code: "MORTISE_OPERATOR_RUN_EXISTS",
      message: `${what} was made with ${field} ${kept[field]}, not ${value}.`,
      fix: "Start it with the settings it was made with, choose another MORTISE_RUN_ID, or remove the volumes of the project (docker compose down --volumes), which deletes every run in them. A seed is of the whole cluster.",
      detail: { field },
    });
  }
}
