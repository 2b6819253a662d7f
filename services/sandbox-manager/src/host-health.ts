/**
 * Owns the health of the host as starts feel it: control groups, memory per cpu, waiting for disks, how long starts
 * take; and above which value each is a warning. Reads the kernel's own files; mends nothing.
 */
import { readFileSync } from "node:fs";

export interface HostHealth {
  /** Memory control groups the kernel holds, dying ones included. */
  readonly cgroups?: number;
  readonly percpuBytes?: number;
  /** Share of the last 10 s in which something waited for a disk, 0 to 1. */
  readonly diskWait?: number;
  readonly startP50Ms?: number;
  readonly forkP50Ms?: number;
}

/** Above this many memory groups the kernel's own bookkeeping makes every start slower. */
const MANY_CGROUPS = 50_000;
/** Every control group and network namespace holds some on every core; a leak of them shows here first. */
const MUCH_PERCPU_BYTES = 4 * 1024 ** 3;
const MUCH_DISK_WAIT = 0.5;
/** Ten times what a start takes on an idle machine (docs/performance.md). */
const SLOW_START_MS = 1_200;
const SLOW_FORK_MS = 500;

/** Durations of the last events of one kind. */
export class RecentTimes {
  readonly #window: number;
  readonly #times: number[] = [];

  constructor(window = 128) {
    this.#window = window;
  }

  add(ms: number): void {
    this.#times.push(ms);
    if (this.#times.length > this.#window) this.#times.shift();
  }

  /** The median; undefined before the first event. */
  p50(): number | undefined {
    const sorted = this.#times.toSorted((a, b) => a - b);
    return sorted[Math.floor((sorted.length - 1) / 2)];
  }
}

export interface StartTimes {
  readonly starts: RecentTimes;
  readonly forks: RecentTimes;
}

/** The host now; what cannot be read is absent. */
export function hostHealth({ starts, forks }: StartTimes, proc = "/proc"): HostHealth {
  return Object.fromEntries(
    Object.entries({
      cgroups: cgroupCount(proc),
      percpuBytes: percpuBytes(proc),
      diskWait: diskWait(proc),
      startP50Ms: starts.p50(),
      forkP50Ms: forks.p50(),
    }).filter(([, value]) => value !== undefined),
  );
}

/** What is above its threshold, one sentence each. */
export function healthWarnings(health: HostHealth): string[] {
  const { cgroups = 0, percpuBytes: percpu = 0, diskWait: wait = 0, startP50Ms = 0, forkP50Ms = 0 } = health;
  const found: string[] = [];
  if (cgroups > MANY_CGROUPS)
    found.push(`the kernel holds ${cgroups} memory control groups: starts get slower; restart the host`);
  if (percpu > MUCH_PERCPU_BYTES)
    found.push(
      `the kernel holds ${Math.round(percpu / 1024 ** 2)} MiB per-cpu memory: something leaks groups`,
    );
  if (wait > MUCH_DISK_WAIT)
    found.push(
      `${Math.round(wait * 100)} % of the time something waits for a disk: lower maxConcurrentStarts`,
    );
  if (startP50Ms > SLOW_START_MS) found.push(`sandboxes take ${Math.round(startP50Ms)} ms to start`);
  if (forkP50Ms > SLOW_FORK_MS) found.push(`forks of templates take ${Math.round(forkP50Ms)} ms`);
  return found;
}

/** From /proc/cgroups, which lists "name hierarchy groups enabled". */
function cgroupCount(proc: string): number | undefined {
  return numberIn(`${proc}/cgroups`, /^memory\t[0-9]+\t([0-9]+)/m);
}

function percpuBytes(proc: string): number | undefined {
  const kib = numberIn(`${proc}/meminfo`, /^Percpu: +([0-9]+) kB/m);
  return kib === undefined ? undefined : kib * 1024;
}

/** Pressure stall information, from Linux 4.20 on where it is enabled. */
function diskWait(proc: string): number | undefined {
  const percent = numberIn(`${proc}/pressure/io`, /^some avg10=([0-9.]+)/m);
  return percent === undefined ? undefined : percent / 100;
}

function numberIn(file: string, pattern: RegExp): number | undefined {
  try {
    const found = pattern.exec(readFileSync(file, "utf8"))?.[1];
    return found === undefined ? undefined : Number(found);
  } catch {
    return undefined;
  }
}
