/**
 * Owns what is known of an evaluation while it runs: how many of its attempts have a verdict, from the records alone, so
 * that it is right at once when a run is resumed. Does not draw.
 */
import {
  filter,
  MetricsRecordSchema,
  Outcome,
  RunPhase,
  TrialState,
  type TrialTransition,
  TrialTransitionSchema,
} from "@mortise/contracts";
import type { Bus, Following } from "@mortise/kernel";

export interface Attempts {
  /** Places whose last trial has the verdict resolved or unresolved. */
  readonly executed: number;
  readonly resolved: number;
  /** Places whose last trial ended without one; it is tried again unless its retries are spent or it is final. */
  readonly without: number;
  /** Trials that had begun. */
  readonly begun: number;
  /** Trials in the place of one that was lost. */
  readonly retried: number;
}

export class AttemptWatch {
  readonly #finished = Promise.withResolvers<void>();
  readonly #last = new Map<number, TrialTransition>();
  readonly #begun = new Set<string>();
  readonly #followings: Following[] = [];
  #isFinished = false;

  private constructor() {}

  /** Resolves when everything recorded until now is counted. */
  static async start(bus: Bus, run: string): Promise<AttemptWatch> {
    const watch = new AttemptWatch();
    const from = "first";
    watch.#followings.push(
      await bus.follow({
        stream: "TRIALS",
        filters: [filter.trialStates(run)],
        from,
        schema: TrialTransitionSchema,
        onMessage: (transition) => watch.#heard(transition),
      }),
      await bus.follow({
        stream: "METRICS",
        filters: [filter.metrics(run)],
        from,
        schema: MetricsRecordSchema,
        onMessage: ({ record }) => {
          if (record.case !== "phase" || record.value.phase !== RunPhase.FINISHED) return;
          watch.#isFinished = true;
          watch.#finished.resolve();
        },
      }),
    );
    await Promise.all(watch.#followings.map(({ caughtUp }) => caughtUp));
    return watch;
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** Resolves when every attempt has a verdict or has spent its retries. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  get attempts(): Attempts {
    const last = [...this.#last.values()];
    const isExecuted = ({ outcome }: TrialTransition) =>
      outcome === Outcome.RESOLVED || outcome === Outcome.UNRESOLVED;
    const executed = last.filter(isExecuted);
    return {
      executed: executed.length,
      resolved: executed.filter(({ outcome }) => outcome === Outcome.RESOLVED).length,
      without: last.length - executed.length,
      begun: this.#begun.size,
      retried: last.reduce((sum, { retry }) => sum + retry, 0),
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#followings.map((following) => following.stop()));
  }

  #heard(transition: TrialTransition): void {
    this.#begun.add(transition.trial);
    if (transition.state !== TrialState.CLOSED) return;
    const known = this.#last.get(transition.slotInGroup);
    if (known === undefined || known.retry <= transition.retry)
      this.#last.set(transition.slotInGroup, transition);
  }
}
