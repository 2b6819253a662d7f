/** Owns saying on what, and beside what, a benchmark ran: numbers without it mean nothing. */
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly kernel: string;
  readonly node: string;
  /** One-minute average before the first measurement. */
  readonly loadBefore: number;
}

export function machine(): Machine {
  const cores = cpus();
  return {
    cpu: cores[0]?.model ?? "unknown",
    cores: cores.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: systemName(),
    kernel: release(),
    node: process.version,
    loadBefore: load(),
  };
}

/** One-minute load average. */
export function load(): number {
  return Number(loadavg()[0]!.toFixed(2));
}

function systemName(): string {
  try {
    return /^PRETTY_NAME="(.*)"$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "unknown";
  } catch {
    return process.platform;
  }
}
