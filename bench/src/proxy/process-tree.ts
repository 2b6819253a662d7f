/**
 * Owns what the kernel says of a process and its descendants: CPU time and memory, the same way for every server
 * of a comparison. Linux only.
 */
import { readdirSync, readFileSync } from "node:fs";

/** USER_HZ of every Linux this runs on. */
const TICKS_PER_SECOND = 100;
const BYTES_PER_KIB = 1024;

export interface TreeUsage {
  /** User and system time of living and reaped processes of the tree. */
  readonly cpuMs: number;
  /** Resident memory, shared pages divided among those that share them. */
  readonly pssBytes: number;
  readonly processes: number;
}

export function treeUsage(root: number): TreeUsage {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const fields = statOf(Number(name));
    if (fields) parents.set(Number(name), Number(fields[1]));
  }
  const tree = [
    root,
    ...[...parents.keys()].filter((pid) => pid !== root && descendsFrom(pid, root, parents)),
  ];
  return {
    cpuMs: tree.reduce((sum, pid) => sum + cpuMsOf(pid), 0),
    pssBytes: tree.reduce((sum, pid) => sum + pssOf(pid), 0),
    processes: tree.length,
  };
}

function descendsFrom(pid: number, root: number, parents: ReadonlyMap<number, number>): boolean {
  for (let up = parents.get(pid); up !== undefined && up > 0; up = parents.get(up))
    if (up === root) return true;
  return false;
}

/** The fields behind the command's name, which may hold anything: state, parent, … */
function statOf(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined; // it has ended
  }
}

function cpuMsOf(pid: number): number {
  const fields = statOf(pid);
  if (!fields) return 0;
  const [utime, stime, cutime, cstime] = fields.slice(11, 15).map(Number) as [number, number, number, number];
  return ((utime + stime + cutime + cstime) * 1000) / TICKS_PER_SECOND;
}

function pssOf(pid: number): number {
  try {
    const [, kib] = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8")) ?? [];
    return Number(kib ?? 0) * BYTES_PER_KIB;
  } catch {
    return 0;
  }
}
