/**
 * Owns Ctrl-C: the first asks the run to drain, a later one kills what is left.
 * Signals that come together are one request: npm, the bootstrap script and the terminal each pass on the same.
 */

import { constants } from "node:os";

const SAME_REQUEST_MS = 1_000;

export class Interrupted extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`interrupted by ${signal}`);
    this.name = "Interrupted";
    this.signal = signal;
  }

  /** As a shell reports the end by a signal. */
  get exitCode(): number {
    return 128 + constants.signals[this.signal];
  }
}

export interface Interrupts {
  /** Aborted with `Interrupted` at the first request. */
  readonly signal: AbortSignal;
  dispose(): void;
}

/** @param onImpatience called at every request after the first. */
export function listenForInterrupts(onImpatience: () => void): Interrupts {
  const controller = new AbortController();
  let firstAtMs = 0;
  const listener = (signal: NodeJS.Signals) => {
    if (!controller.signal.aborted) {
      firstAtMs = performance.now();
      controller.abort(new Interrupted(signal));
    } else if (performance.now() - firstAtMs > SAME_REQUEST_MS) onImpatience();
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, listener);
  return {
    signal: controller.signal,
    dispose: () => {
      for (const signal of signals) process.off(signal, listener);
    },
  };
}
