/**
 * Owns the question whether a site and a run can work on this machine, asked before anything is started. There
 * is no way to force past an answer. Does not change anything.
 */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { MortiseError, type RunConfig, type SiteConfig } from "@mortise/contracts";
import { openCheckpoint } from "@mortise/policy";
import { loadIndexedTask, readTaskIndex } from "@mortise/tasks";
import { assertFreeSpace } from "./free-space.js";
import { readGreeting } from "./provision/nats-server/version.js";
import { assertSandboxWishes } from "./sandbox-wishes.js";
import { siteDown } from "./site/open-site.js";
import { underFlag } from "./site/refusal.js";

/** What was checked, one line each. Throws the first thing that would stop the run. */
export async function preflight(site: SiteConfig, run: RunConfig): Promise<string[]> {
  assertSandboxWishes(site, run);
  const version = await busVersion(site);
  const checkpoint = await openCheckpoint(run.policy.checkpoint).catch((error) => {
    throw underFlag("policy.checkpoint", error);
  });
  const index = readTaskIndex(run.tasks.index ?? site.tasks.directory);
  const counts = [run.tasks.train, run.tasks.evaluate].map((split) => assertSplit(site, index, split, run));
  assertFile(site.identity.directory, "identity.directory");
  if (run.warmStart !== undefined) assertFile(run.warmStart.demonstrations, "warmStart.demonstrations");
  const place = existsSync(site.state.directory) ? site.state.directory : dirname(site.state.directory);
  await assertFreeSpace(place);
  return [
    `nats-server ${version} at ${site.nats.url}`,
    `checkpoint ${run.policy.checkpoint}: ${checkpoint.config.modelType}, ${checkpoint.config.layers} layers`,
    `tasks: ${counts[0]} for training, ${counts[1]} for evaluation`,
    `harness ${run.rollout.harness}`,
    `disk at ${place}`,
  ];
}

async function busVersion(site: SiteConfig): Promise<string> {
  try {
    return (await readGreeting(site.nats.url)).version;
  } catch (error) {
    if (error instanceof MortiseError && error.code === "MORTISE_TRANSPORT_UNAVAILABLE") throw siteDown(site);
    throw error;
  }
}

function assertSplit(
  site: SiteConfig,
  index: ReturnType<typeof readTaskIndex>,
  split: string,
  run: RunConfig,
): number {
  const entries = index.filter((entry) => entry.split === split);
  const isNeeded = split === run.tasks.train ? run.trainer.steps > 0 : run.evaluation.attempts > 0;
  if (entries.length === 0 && isNeeded) {
    throw new MortiseError({
      code: "MORTISE_TASK_UNKNOWN",
      message: `The index of ${run.tasks.index ?? site.tasks.directory} has no task in the split ${split}.`,
      detail: { field: split === run.tasks.train ? "tasks.train" : "tasks.evaluate" },
    });
  }
  for (const entry of entries) loadIndexedTask(site.tasks.directory, entry);
  return entries.length;
}

function assertFile(path: string, field: string): void {
  if (existsSync(path)) return;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `${field} is ${path}, which does not exist.`,
    detail: { field },
  });
}
