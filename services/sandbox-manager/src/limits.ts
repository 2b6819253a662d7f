/** Owns what one sandbox may use: the request, else the task's own wish, never above the site's limit. */
import type { SandboxLimits, SiteConfig } from "@mortise/contracts";
import type { Task } from "@mortise/tasks";
import type { DiffLimits, Limits } from "./backend/types.js";

const MIB = 1024 * 1024;
/** A patch is carried in memory and in one object. */
const MAX_PATCH_FILE_BYTES = 16 * MIB;
const MAX_PATCH_TOTAL_BYTES = 64 * MIB;
/** Tests load what the agent ran plus themselves. */
export const VERIFY_MEMORY_FACTOR = 2;

export function limitsFor(
  site: SiteConfig["sandbox"],
  task: Task,
  asked: SandboxLimits | undefined,
  memoryFactor = 1,
): Limits {
  const { environment } = task;
  const pick = (request: number, wish: number, most: number) =>
    request > 0 ? request : Math.min(wish, most);
  return {
    cpus: pick(asked?.cpus ?? 0, environment.cpus, site.cpus),
    memoryBytes: pick(
      Number(asked?.memoryBytes ?? 0n),
      environment.memoryMb * MIB * memoryFactor,
      site.memoryBytes,
    ),
    pids: asked?.pids || site.pids,
    diskBytes: pick(Number(asked?.diskBytes ?? 0n), environment.storageMb * MIB, site.diskBytes),
    outputBytes: Number(asked?.outputBytes ?? 0n) || site.outputBytes,
  };
}

export function patchLimits(limits: Limits): DiffLimits {
  return {
    maxFileBytes: Math.min(limits.diskBytes, MAX_PATCH_FILE_BYTES),
    maxTotalBytes: Math.min(limits.diskBytes, MAX_PATCH_TOTAL_BYTES),
  };
}
