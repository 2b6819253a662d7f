/** Owns the scheduler's Prometheus metrics. Labels are closed sets; no trial, task or run id is one. */
import { ExclusionReason, GroupDisposition, TerminationReason } from "@mortise/contracts";
import type { Metrics } from "@mortise/kernel";
import type { GroupInit } from "../group/disposition.js";
import { occupancy } from "../run/slots.js";
import type { RunState } from "../run/state.js";
import type { Closing } from "../trial/standing.js";
import type { Trial } from "../trial/trial.js";

export class SchedulerMetrics {
  readonly #closed;
  readonly #retries;
  readonly #groups;

  /** @param stateNow read when metrics are scraped */
  constructor(metrics: Metrics, stateNow: () => RunState) {
    this.#closed = metrics.counter("trials_closed_total", "Trials closed, by termination reason.", [
      "termination",
    ]);
    this.#retries = metrics.counter("trial_retries_total", "Closed trials that were retries.");
    this.#groups = metrics.counter("groups_decided_total", "Groups decided, by disposition or drop reason.", [
      "disposition",
    ]);
    const live = metrics.gauge("trials_live", "Live trials, by stage.", ["stage"]);
    const slots = metrics.gauge("slots_used", "Inference slots in use.");
    Object.assign(live, {
      collect() {
        live.reset();
        for (const { stage } of stateNow().trials.values()) live.inc({ stage });
      },
    });
    const waiting = metrics.gauge(
      "groups_waiting",
      "Complete groups that wait for their turn in the stream.",
    );
    Object.assign(waiting, { collect: () => waiting.set(stateNow().complete.size) });
    Object.assign(slots, { collect: () => slots.set(occupancy(stateNow().trials.values()).running) });
  }

  closed(trial: Trial, closing: Closing): void {
    this.#closed.inc({ termination: TerminationReason[closing.termination].toLowerCase() });
    if (trial.retry > 0) this.#retries.inc();
  }

  decided(record: GroupInit): void {
    const isAdmitted = record.disposition === GroupDisposition.ADMITTED;
    const reason = record.dropReason ?? ExclusionReason.UNSPECIFIED;
    this.#groups.inc({ disposition: isAdmitted ? "admitted" : ExclusionReason[reason].toLowerCase() });
  }
}
