/**
 * Owns what a parser tells about a stretch of log: the per-test map, and what the runner said about itself.
 * Does not judge it.
 */
import { TestMap } from "./test-map.js";

/** Something a parser saw besides results. `tamper` only where no honest run prints it. */
export interface Finding {
  readonly kind: "tamper" | "infra" | "note";
  readonly reason: string;
}

export class Observations {
  readonly tests = new TestMap();
  readonly findings: Finding[] = [];
  /** Whether the runner reported its end; undefined when the log shows no trace of a runner that would. */
  isComplete: boolean | undefined;
  /** Tests that the runner says it ran, for suites which print failures only; 0 when it says nothing. */
  ranCount = 0;

  find(kind: Finding["kind"], reason: string): void {
    this.findings.push({ kind, reason });
  }
}
