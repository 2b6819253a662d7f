/** Owns the trainer's Prometheus metrics. Names and meanings are listed in README.md. */
import type { StepRecord } from "@mortise/contracts";
import type { Metrics } from "@mortise/kernel";
import type { BatchGroup } from "./step/form-batch.js";

export class TrainerMetrics {
  readonly #steps;
  readonly #groups;
  readonly #version;
  readonly #staleness;
  readonly #ledger;
  readonly #pearson;
  readonly #delta;
  readonly #independentDelta;
  readonly #stepSeconds;
  readonly #alarms;
  readonly #mismatches;

  constructor(metrics: Metrics) {
    this.#steps = metrics.counter("step_total", "Steps committed by this process.");
    this.#groups = metrics.counter("group_total", "Groups consumed, by fate.", ["fate"]);
    this.#version = metrics.gauge("policy_version", "Current policy version.");
    this.#staleness = metrics.gauge(
      "staleness_max_versions",
      "Greatest staleness among the trials of the last step.",
    );
    this.#ledger = metrics.gauge(
      "ledger_tokens",
      "Sampled tokens of training trials by what became of them (C5).",
      ["column"],
    );
    this.#pearson = metrics.gauge(
      "consistency_pearson_ratio",
      "Correlation of recorded and recomputed probabilities, last step.",
    );
    this.#delta = metrics.gauge(
      "consistency_max_delta_nats",
      "Greatest |Δ log-probability| of the last step.",
    );
    this.#independentDelta = metrics.gauge(
      "consistency_independent_max_delta_nats",
      "Greatest |Δ log-probability| against the independent implementation, last step.",
    );
    this.#stepSeconds = metrics.histogram(
      "step_seconds",
      "Wall clock from a formed batch to its computed version.",
      {
        buckets: [0.5, 1, 2, 5, 10, 30, 60, 300],
      },
    );
    this.#mismatches = metrics.gauge(
      "receipt_mismatch_count",
      "Receipts that named other weights than the published ones.",
    );
    this.#alarms = metrics.counter("alarm_total", "Alarms raised by step records.", ["name"]);
  }

  version(version: number): void {
    this.#version.set(version);
  }

  alarm(name: string): void {
    this.#alarms.inc({ name });
  }

  step(record: StepRecord, batch: readonly BatchGroup[], receiptMismatches: number): void {
    this.#steps.inc();
    for (const { fate } of batch) this.#groups.inc({ fate });
    this.#mismatches.set(receiptMismatches);
    this.version(Number(record.version));
    this.#staleness.set(record.staleness?.max ?? 0);
    this.#stepSeconds.observe(record.wallMs / 1000);
    // An undefined measure leaves the gauge where it was; the step record says that it is absent (C10).
    const { pearsonProbability, maxAbsDelta, independentMaxAbsDelta } = record.consistency ?? {};
    if (pearsonProbability !== undefined) this.#pearson.set(pearsonProbability);
    if (maxAbsDelta !== undefined) this.#delta.set(maxAbsDelta);
    if (independentMaxAbsDelta !== undefined) this.#independentDelta.set(independentMaxAbsDelta);
    const { ledger } = record;
    if (!ledger) return;
    this.#ledger.set({ column: "sampled" }, Number(ledger.sampled));
    this.#ledger.set({ column: "trained" }, Number(ledger.trained));
    this.#ledger.set({ column: "baselineOnly" }, Number(ledger.baselineOnly));
    this.#ledger.set(
      { column: "excluded" },
      ledger.excluded.reduce((sum, part) => sum + Number(part.tokens), 0),
    );
    this.#ledger.set({ column: "unconsumed" }, Number(ledger.unconsumed));
  }
}
