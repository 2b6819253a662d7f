/**
 * Owns the split of a process's CPU time by stage of the work, from which the overhead per trial is reported.
 * Does not estimate: time is added by whoever measured it, and what nobody claimed shows as the difference to
 * the busy time of the whole process.
 */
import { readFileSync } from "node:fs";

/** Linux reports child times in clock ticks; the kernel interface fixes 100 per second. */
const TICK_MS = 10;

export interface CpuReport {
  /** User and system time of this process, all threads, in milliseconds since it started. */
  readonly busyMs: number;
  /** The same for children that have ended and been waited for; absent where the platform does not say (C10). */
  readonly childrenMs?: number;
  readonly byStage: Record<string, number>;
}

export class StageCpu {
  readonly #ms = new Map<string, number>();

  /** Adds CPU milliseconds measured elsewhere, for example in a worker thread. */
  add(stage: string, ms: number): void {
    this.#ms.set(stage, (this.#ms.get(stage) ?? 0) + ms);
  }

  /** Runs a synchronous function and adds the CPU time this thread spent in it. */
  measure<T>(stage: string, fn: () => T): T {
    const before = process.threadCpuUsage();
    try {
      return fn();
    } finally {
      const spent = process.threadCpuUsage(before);
      this.add(stage, (spent.user + spent.system) / 1000);
    }
  }

  byStage(): Record<string, number> {
    return Object.fromEntries(this.#ms);
  }

  report(): CpuReport {
    const own = process.cpuUsage();
    const childrenMs = endedChildrenMs();
    return {
      busyMs: (own.user + own.system) / 1000,
      ...(childrenMs === undefined ? {} : { childrenMs }),
      byStage: this.byStage(),
    };
  }
}

/** The stage clock of this process. */
export const stageCpu = new StageCpu();

function endedChildrenMs(): number | undefined {
  if (process.platform !== "linux") return undefined;
  // Fields 16 and 17 of proc(5) stat; the command name before them may itself hold spaces and parentheses.
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) * TICK_MS;
}
