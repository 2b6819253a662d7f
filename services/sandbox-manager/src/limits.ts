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

/** With less than that no command is started, whatever it is. */
const SMALLEST = { cpus: 0.01, memoryBytes: 16 * MIB, pids: 8, diskBytes: MIB } as const;

export interface LimitWishes {
  readonly limits?: SandboxLimits | undefined;
  readonly overrides?: Pick<SandboxOverrides, "cpusMultiplier" | "memoryMultiplier"> | undefined;
  /** Of the memory, whoever named it. */
  readonly memoryFactor?: number;
}

/**
 * Throws what a limit is too small to start in: MORTISE_TASK_INVALID when the task's own wish is, MORTISE_SANDBOX_SETUP
 * when the run or the site is to blame.
 */
export function limitsFor(site: SiteConfig["sandbox"], task: Task, wishes: LimitWishes = {}): Limits {
  const { environment } = task;
  const { limits: asked, overrides, memoryFactor = 1 } = wishes;
  const pick = (name: LimitName, request: number, own: Wish | undefined): number => {
    const wish = own === undefined ? site[name] : own.value * factor(own.multiplier);
    const limit = Math.min(request > 0 ? request : wish, site[name]);
    if (limit < SMALLEST[name]) throw tooSmall(name, limit, { asked: request, own, task });
    return limit;
  };
  return {
    cpus: pick("cpus", asked?.cpus ?? 0, {
      value: environment.cpus,
      multiplier: overrides?.cpusMultiplier,
      field: "environment.cpus",
      runField: "rollout.multipliers.cpus",
    }),
    memoryBytes: Math.round(
      pick("memoryBytes", Number(asked?.memoryBytes ?? 0n) * memoryFactor, {
        value: environment.memoryMb * MIB * memoryFactor,
        multiplier: overrides?.memoryMultiplier,
        field: "environment.memory_mb",
        runField: "rollout.multipliers.memory",
      }),
    ),
    pids: pick("pids", asked?.pids ?? 0, undefined),
    diskBytes: pick("diskBytes", Number(asked?.diskBytes ?? 0n), {
      value: environment.storageMb * MIB,
      field: "environment.storage_mb",
    }),
    outputBytes: Math.min(Number(asked?.outputBytes ?? 0n) || site.outputBytes, site.outputBytes),
  };
}

type LimitName = keyof typeof SMALLEST;

interface Blamed {
  /** By the run; 0 when it does not say. */
  readonly asked: number;
  readonly own: Wish | undefined;
  readonly task: Task;
}

/** What a task asks for, in the unit of the limit. */
interface Wish {
  readonly value: number;
  readonly multiplier?: number | undefined;
  readonly field: string;
  readonly runField?: string;
}

/** Names whoever made the limit what it is. */
function tooSmall(name: LimitName, limit: number, { asked, own, task }: Blamed): MortiseError {
  const least = SMALLEST[name];
  const words = `gives a sandbox ${limit} ${name}; nothing starts with less than ${least}`;
  if (asked === 0 && own !== undefined && own.value < least)
    return new MortiseError({
      code: "MORTISE_TASK_INVALID",
      message: `${task.directory}: ${own.field} ${words}.`,
      fix: `Raise ${own.field} of the task's task.toml.`,
      detail: { field: own.field },
    });
  const isMultiplied = own?.runField !== undefined && own.value * factor(own.multiplier) < least;
  const field = asked > 0 ? `rollout.limits.${name}` : isMultiplied ? own.runField : `sandbox.${name}`;
  return new MortiseError({
    code: "MORTISE_SANDBOX_SETUP",
    message: `${field} ${words}.`,
    fix: `Raise ${field}, of the run file or of the site file.`,
    detail: { field },
  });
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
