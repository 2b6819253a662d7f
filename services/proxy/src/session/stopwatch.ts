/** Owns the parts of a turn's latency: where the time between the request and its journalled reply went. */
import type { Clock } from "@mortise/kernel";

/**
 * plan: attaching and rendering. first: until the engine's first ids, when they are wanted as they come. sample:
 * from then to its last. journal: until the turn was on the stream.
 */
export type TurnPart = "plan" | "first" | "sample" | "journal";

export class Stopwatch {
  /** Milliseconds of each part that has ended. */
  readonly times = new Map<TurnPart, number>();
  private readonly clock: Clock;
  private since: number;

  constructor(clock: Clock) {
    this.clock = clock;
    this.since = clock.now();
  }

  /** Ends a part; the next one begins. */
  lap(part: TurnPart): void {
    const now = this.clock.now();
    this.times.set(part, now - this.since);
    this.since = now;
  }
}
