/**
 * Owns reading the CPU time of another process from proc(5), with the children it has waited for.
 * Linux only; elsewhere there is no reading rather than a wrong one (C10).
 */
import { readFileSync } from "node:fs";

/** The kernel interface fixes 100 ticks per second. */
const TICK_MS = 10;

/** utime, stime, cutime and cstime together, milliseconds; undefined when the process is gone. */
export function processTreeCpuMs(pid: number): number | undefined {
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
