/**
 * Owns what one sandbox may use: the request, else the task's own wish times the run's multiplier; never above the
 * site's limit, and never so little that nothing starts.
 */
import { MortiseError, type SandboxLimits, type SandboxOverrides, type SiteConfig } from "@mortise/contracts";
import type { Task } from "@mortise/tasks";
import type { DiffLimits, Limits, Mount, ScratchVolume } from "./backend/types.js";

const MIB = 1024 * 1024;
/** A patch is carried in memory and in one object. */
const MAX_PATCH_FILE_BYTES = 16 * MIB;
const MAX_PATCH_TOTAL_BYTES = 64 * MIB;
/** Tests load what the agent ran plus themselves. */
export const VERIFY_MEMORY_FACTOR = 2;

export interface LimitWishes {
  readonly limits?: SandboxLimits | undefined;
  readonly overrides?: Pick<SandboxOverrides, "cpusMultiplier" | "memoryMultiplier"> | undefined;
  /** Of the memory, whoever named it. */
  readonly memoryFactor?: number;
}

export function limitsFor(site: SiteConfig["sandbox"], task: Task, wishes: LimitWishes = {}): Limits {
  const { environment } = task;
  const { limits: asked, overrides, memoryFactor = 1 } = wishes;
  const pick = (request: number, wish: number, most: number) => Math.min(request > 0 ? request : wish, most);
  return {
    cpus: pick(asked?.cpus ?? 0, environment.cpus * factor(overrides?.cpusMultiplier), site.cpus),
    memoryBytes: Math.round(
      pick(
        Number(asked?.memoryBytes ?? 0n) * memoryFactor,
        environment.memoryMb * MIB * memoryFactor * factor(overrides?.memoryMultiplier),
        site.memoryBytes,
      ),
    ),
    pids: pick(asked?.pids ?? 0, site.pids, site.pids),
    diskBytes: pick(Number(asked?.diskBytes ?? 0n), environment.storageMb * MIB, site.diskBytes),
    outputBytes: pick(Number(asked?.outputBytes ?? 0n), site.outputBytes, site.outputBytes),
  };
}

export function patchLimits(limits: Limits): DiffLimits {
  return {
    maxFileBytes: Math.min(limits.diskBytes, MAX_PATCH_FILE_BYTES),
    maxTotalBytes: Math.min(limits.diskBytes, MAX_PATCH_TOTAL_BYTES),
  };
}

/** The run's mounts by the names the site gives out. Throws MORTISE_SANDBOX_SETUP for a name it does not. */
export function sharedMounts(
  site: SiteConfig["sandbox"],
  { mounts }: Pick<SandboxOverrides, "mounts">,
): Mount[] {
  return mounts.map(({ name, target }) => {
    const source = Object.hasOwn(site.shared, name) ? site.shared[name] : undefined;
    if (source === undefined)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `rollout.mounts names ${JSON.stringify(name)}; sandbox.shared has ${Object.keys(site.shared).join(", ") || "none"}.`,
        fix: "Add the directory to sandbox.shared of the site file, or correct the name.",
      });
    return { source, target };
  });
}

/** The run's scratch volumes. Throws MORTISE_SANDBOX_SETUP when they are larger than the site allows. */
export function scratchVolumes(
  site: SiteConfig["sandbox"],
  { scratch }: Pick<SandboxOverrides, "scratch">,
): ScratchVolume[] {
  const total = scratch.reduce((sum, { bytes }) => sum + Number(bytes), 0);
  if (total > site.maxScratchBytes)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_SETUP",
      message: `rollout.scratch asks for ${total} bytes; sandbox.maxScratchBytes is ${site.maxScratchBytes}.`,
      fix: "Ask for less, or raise sandbox.maxScratchBytes of the site file.",
    });
  return scratch.map(({ target, bytes }) => ({ target, bytes: Number(bytes) }));
}

/** 0 and absent mean unchanged. */
function factor(multiplier: number | undefined): number {
  return multiplier === undefined || multiplier <= 0 ? 1 : multiplier;
}
