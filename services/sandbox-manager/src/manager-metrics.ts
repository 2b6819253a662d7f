/** Owns the metrics of a sandbox-manager; names and meanings are listed in the README. */
import { Stage } from "@mortise/contracts";
import type { Metrics } from "@mortise/kernel";
import type { Image } from "./backend/types.js";
import { type HostHealth, hostHealth, RecentTimes } from "./host-health.js";
import type { StageSpan } from "./trial/stage-clock.js";

const STAGE_BUCKETS_MS = [
  1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 120_000, 600_000,
];

export interface Counts {
  readonly preparing: number;
  readonly warm: number;
  readonly running: number;
}

/** Numbers that are read when somebody asks. */
export interface Readings {
  readonly counts: () => Counts;
  readonly templates: () => { readonly size: number; readonly bytes: number };
  readonly waiting: () => number;
}

export class ManagerMetrics {
  readonly prepared: ReturnType<Metrics["counter"]>;
  readonly ended: ReturnType<Metrics["counter"]>;
  readonly runs: ReturnType<Metrics["counter"]>;
  readonly denied: ReturnType<Metrics["counter"]>;
  readonly #stageMs: ReturnType<Metrics["histogram"]>;
  readonly #startMs: ReturnType<Metrics["histogram"]>;
  readonly #modelMs: ReturnType<Metrics["counter"]>;
  readonly #throttledMs: ReturnType<Metrics["counter"]>;
  readonly #diskWaitMs: ReturnType<Metrics["counter"]>;
  readonly #times = { starts: new RecentTimes(), forks: new RecentTimes() };

  constructor(metrics: Metrics, readings: Readings) {
    this.prepared = metrics.counter("prepared_total", "Trials whose sandbox was prepared.");
    this.ended = metrics.counter("ended_total", "Trials ended, by reason.", ["termination"]);
    this.runs = metrics.counter("runs_total", "Single runs for verification, by how they ended.", [
      "outcome",
    ]);
    this.denied = metrics.counter(
      "egress_denied_total",
      "Attempts of agents to reach what their network closes.",
    );
    this.#stageMs = metrics.histogram("stage_milliseconds", "Wall clock of a stage, milliseconds.", {
      buckets: STAGE_BUCKETS_MS,
      labels: ["stage"],
    });
    this.#startMs = metrics.histogram("start_milliseconds", "Time to make a sandbox, milliseconds.", {
      buckets: STAGE_BUCKETS_MS,
      labels: ["kind"],
    });
    this.#modelMs = metrics.counter(
      "agent_model_milliseconds_total",
      "Agent time with at least one model request open, milliseconds.",
    );
    this.#throttledMs = metrics.counter(
      "throttled_milliseconds_total",
      "Time processes were held back by their sandbox's cpu limit, milliseconds.",
      ["stage"],
    );
    this.#diskWaitMs = metrics.counter(
      "disk_wait_milliseconds_total",
      "Time processes of sandboxes waited for block devices, milliseconds.",
      ["stage"],
    );
    this.#collect(metrics, readings);
  }

  /** A sandbox was made from this kind of image. */
  started(kind: Image["kind"], ms: number): void {
    const isFork = kind === "snapshot";
    (isFork ? this.#times.forks : this.#times.starts).add(ms);
    this.#startMs.observe({ kind: isFork ? "fork" : kind }, ms);
  }

  /** The stages of a trial or a run that ended. */
  observe(spans: readonly StageSpan[]): void {
    for (const { stage, wallMs, modelMs, throttledMs, diskWaitMs } of spans) {
      const name = { stage: Stage[stage].toLowerCase() };
      this.#stageMs.observe(name, wallMs);
      if (modelMs !== undefined) this.#modelMs.inc(modelMs);
      if (throttledMs !== undefined) this.#throttledMs.inc(name, throttledMs);
      if (diskWaitMs !== undefined) this.#diskWaitMs.inc(name, diskWaitMs);
    }
  }

  health(): HostHealth {
    return hostHealth(this.#times);
  }

  #collect(metrics: Metrics, { counts, templates, waiting }: Readings): void {
    const sandboxes = metrics.gauge("sandboxes_count", "Live sandboxes of trials, by phase.", ["phase"]);
    const waitingCount = metrics.gauge("starts_waiting_count", "Starts waiting for their turn.");
    const templateCount = metrics.gauge("templates_count", "Templates held.");
    const templateBytes = metrics.gauge("templates_bytes", "What templates take, as far as it is known.");
    const cgroups = metrics.gauge("cgroups_count", "Memory control groups the kernel holds.");
    const percpu = metrics.gauge("percpu_bytes", "Memory the kernel holds per cpu.");
    const diskWait = metrics.gauge(
      "host_disk_wait_ratio",
      "Share of the last 10 s in which something waited for a disk.",
    );
    Object.assign(sandboxes, {
      collect: () => {
        for (const [phase, count] of Object.entries(counts())) sandboxes.set({ phase }, count);
        waitingCount.set(waiting());
        templateCount.set(templates().size);
        templateBytes.set(templates().bytes);
      },
    });
    Object.assign(cgroups, {
      collect: () => {
        const health = this.health();
        if (health.cgroups !== undefined) cgroups.set(health.cgroups);
        if (health.percpuBytes !== undefined) percpu.set(health.percpuBytes);
        if (health.diskWait !== undefined) diskWait.set(health.diskWait);
      },
    });
  }
}
