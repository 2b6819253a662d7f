/** Owns the archiver's Prometheus metrics. */
import type { Metrics } from "@mortise/kernel";
import type { Position } from "./archive/position.js";

export class ArchiverMetrics {
  readonly #rows;
  readonly #missing;

  /** @param positionNow read when metrics are scraped */
  constructor(metrics: Metrics, positionNow: () => Position) {
    this.#rows = metrics.counter("rows_total", "Rows taken, by table.", ["table"]);
    this.#missing = metrics.counter("blobs_missing_total", "Contents named by a message and not found.");
    const position = metrics.gauge("position_sequence", "Last sequence archived durably, by stream.", [
      "stream",
    ]);
    Object.assign(position, {
      collect() {
        for (const [stream, { sequence }] of Object.entries(positionNow().streams))
          position.set({ stream }, sequence);
      },
    });
  }

  row(table: string): void {
    this.#rows.inc({ table });
  }

  blobMissing(): void {
    this.#missing.inc();
  }
}
