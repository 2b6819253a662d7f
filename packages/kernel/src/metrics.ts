/**
 * Owns the Prometheus metrics of one process, under names `mortise_<service>_<noun>_<unit>`.
 * Does not serve them (see service/http.ts). Labels are small closed sets: never a trial, session or task id.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { StageCpu } from "./stage-cpu.js";

export class Metrics {
  readonly #prefix: string;
  readonly #registry = new Registry();

  /** @param service its name as in `services/<name>`; dashes become underscores in metric names. */
  constructor(service: string) {
    this.#prefix = `mortise_${service.replaceAll("-", "_")}_`;
  }

  /** A count that only grows. `name` is `<noun>_total`, with or without the prefix. */
  counter<L extends string = string>(name: string, help: string, labels: readonly L[] = []): Counter<L> {
    return new Counter({
      name: this.#named(name),
      help,
      labelNames: [...labels],
      registers: [this.#registry],
    });
  }

  /** A value that goes up and down, in the unit the name ends with. */
  gauge<L extends string = string>(name: string, help: string, labels: readonly L[] = []): Gauge<L> {
    return new Gauge({ name: this.#named(name), help, labelNames: [...labels], registers: [this.#registry] });
  }

  /** A distribution; bucket bounds are in the unit the name ends with. */
  histogram<L extends string = string>(
    name: string,
    help: string,
    options: { buckets: readonly number[]; labels?: readonly L[] },
  ): Histogram<L> {
    return new Histogram({
      name: this.#named(name),
      help,
      buckets: [...options.buckets],
      labelNames: [...(options.labels ?? [])],
      registers: [this.#registry],
    });
  }

  /** Adds process metrics (CPU, memory, event-loop delay) and the CPU time of each stage. */
  exposeProcess(stageCpu: StageCpu): void {
    collectDefaultMetrics({ register: this.#registry, prefix: this.#prefix });
    const seconds = this.counter("stage_cpu_seconds_total", "CPU time by stage of the work, seconds.", [
      "stage",
    ]);
    const collect = (): void => {
      seconds.reset();
      for (const [stage, ms] of Object.entries(stageCpu.byStage())) seconds.inc({ stage }, ms / 1000);
    };
    Object.assign(seconds, { collect });
  }

  /** The exposition text of everything registered here. */
  render(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  #named(name: string): string {
    return name.startsWith(this.#prefix) ? name : this.#prefix + name;
  }
}
