/**
 * Owns adding up the CPU time of a run's processes: this one, the supervised ones, and every child either of
 * them has waited for. Read from proc(5), because that counts processes that have already ended.
 * Does not count a process that was neither supervised nor waited for: nobody accounts for it but its cgroup.
 */
import { readFileSync } from "node:fs";

/** The kernel interface fixes 100 ticks per second. */
const TICK_MS = 10;

/** utime, stime, cutime and cstime of a process, as milliseconds together; undefined when it is gone. */
export function processTreeCpuMs(pid: number | "self"): number | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The command name, in parentheses, may hold spaces; fields are counted from behind it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/**
 * Busy CPU of everything under this process since it started. A supervised process that has died is in our own
 * children's time, so nothing is lost by a restart.
 */
export function busyCpuMs(supervisedPids: readonly number[]): number {
  const parts = [processTreeCpuMs("self"), ...supervisedPids.map(processTreeCpuMs)];
  return parts.reduce<number>((sum, part) => sum + (part ?? 0), 0);
}
