/**
 * Owns what the counters of a pod's control group and network say, as the helper reads them inside: one hierarchy, or
 * one a controller. What a runtime hides is absent (C10).
 */
import type { Usage } from "../types.js";

export type Counters = Readonly<Record<string, string>>;

export function usageOf(counters: Counters): Usage {
  const all: Usage = {
    ...optional(
      "cpuMs",
      field(counters["cpu.stat"], "usage_usec", 1e-3) ?? whole(counters["v1/cpuacct.usage"], 1e-6),
    ),
    ...optional(
      "throttledMs",
      field(counters["cpu.stat"], "throttled_usec", 1e-3) ??
        field(counters["v1/cpu.stat"], "throttled_time", 1e-6),
    ),
    ...optional("memoryPeakBytes", whole(counters["memory.peak"], 1) ?? whole(counters["v1/memory.max"], 1)),
    ...optional(
      "oomKills",
      field(counters["memory.events"], "oom_kill", 1) ??
        field(counters["v1/memory.oom_control"], "oom_kill", 1),
    ),
    ...optional(
      "pidsRefusals",
      field(counters["pids.events"], "max", 1) ?? field(counters["v1/pids.events"], "max", 1),
    ),
    ...optional("diskWaitMs", pressure(counters["io.pressure"])),
  };
  return all;
}

/** Packets the pod's kernel had no route for: every attempt to leave ends there. Absent where it cannot be read. */
export function refusalsOf(counters: Counters): number | undefined {
  const [names, values] = (counters.snmp ?? "")
    .split("\n")
    .filter((line) => line.startsWith("Ip:"))
    .map((line) => line.split(" "));
  if (names === undefined || values === undefined) return undefined;
  const v4 = Number(values[names.indexOf("OutNoRoutes")] ?? 0);
  const v6 = /^Ip6OutNoRoutes\s+(\d+)$/m.exec(counters.snmp6 ?? "")?.[1] ?? 0;
  return v4 + Number(v6);
}

function optional<Key extends keyof Usage>(key: Key, value: number | undefined): Partial<Pick<Usage, Key>> {
  return value === undefined ? {} : ({ [key]: value } as Pick<Usage, Key>);
}

function whole(text: string | undefined, factor: number): number | undefined {
  const value = Number(text?.trim() || Number.NaN);
  return Number.isFinite(value) ? value * factor : undefined;
}

function field(text: string | undefined, name: string, factor: number): number | undefined {
  const line = text?.split("\n").find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : whole(line.slice(name.length + 1), factor);
}

/** "some": the time in which at least one process stood still for a block device. */
function pressure(text: string | undefined): number | undefined {
  return whole(/^some .*total=([0-9]+)$/m.exec(text ?? "")?.[1], 1e-3);
}
