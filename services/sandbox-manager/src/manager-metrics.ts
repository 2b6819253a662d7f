/** Owns the metrics of a sandbox-manager; names and meanings are listed in the README. */
import { readFileSync } from "node:fs";
import type { Metrics } from "@mortise/kernel";

const STAGE_BUCKETS_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 120_000];
/** Above this many memory groups the kernel's own bookkeeping makes every start slower. */
export const MANY_CGROUPS = 50_000;

export interface Counts {
  readonly preparing: number;
  readonly warm: number;
  readonly running: number;
}

export class ManagerMetrics {
  readonly prepared: ReturnType<Metrics["counter"]>;
  readonly ended: ReturnType<Metrics["counter"]>;
  readonly stageMs: ReturnType<Metrics["histogram"]>;
  readonly runs: ReturnType<Metrics["counter"]>;

  constructor(metrics: Metrics, counts: () => Counts) {
    this.prepared = metrics.counter("prepared_total", "Trials whose sandbox was prepared.");
    this.ended = metrics.counter("ended_total", "Trials ended, by reason.", ["termination"]);
    this.runs = metrics.counter("runs_total", "Single runs for verification, by how they ended.", [
      "outcome",
    ]);
    this.stageMs = metrics.histogram("stage_milliseconds", "Wall clock of a stage, milliseconds.", {
      buckets: STAGE_BUCKETS_MS,
      labels: ["stage"],
    });
    const sandboxes = metrics.gauge("sandboxes_count", "Live sandboxes of trials, by phase.", ["phase"]);
    const cgroups = metrics.gauge("cgroups_count", "Memory control groups the kernel holds.");
    Object.assign(sandboxes, {
      collect: () => {
        for (const [phase, count] of Object.entries(counts())) sandboxes.set({ phase }, count);
      },
    });
    Object.assign(cgroups, {
      collect: () => {
        const count = cgroupCount();
        if (count !== undefined) cgroups.set(count);
      },
    });
  }
}

/** Memory control groups the kernel holds, dying ones included; undefined where it does not say. */
export function cgroupCount(): number | undefined {
  try {
    const line = readFileSync("/proc/cgroups", "utf8")
      .split("\n")
      .find((candidate) => candidate.startsWith("memory\t"));
    return line === undefined ? undefined : Number(line.split("\t")[2]);
  } catch {
    return undefined;
  }
}
