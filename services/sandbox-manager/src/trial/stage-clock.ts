/**
 * Owns the times of a trial's stages: one stage at a time, wall clock always, what its processes used where it was
 * measured (C10). A stage that is entered again goes on: its times are sums.
 */
import { type Stage, Stage as Stages } from "@mortise/contracts";
import { stageCpu } from "@mortise/kernel";
import type { Usage } from "../backend/types.js";

/** What a stage's processes used. */
export type StageUsage = Pick<Usage, "cpuMs" | "throttledMs" | "diskWaitMs"> & {
  /** At least one model request was open. */
  readonly modelMs?: number;
};

export interface StageSpan extends StageUsage {
  readonly stage: Stage;
  readonly wallMs: number;
}

const MEASURED = ["cpuMs", "throttledMs", "diskWaitMs", "modelMs"] as const;

const NAMES: Partial<Record<Stage, string>> = {
  [Stages.SETUP]: "setup",
  [Stages.AGENT]: "agent",
  [Stages.VERIFY]: "verify",
  [Stages.CLEANUP]: "cleanup",
};

export class StageClock {
  readonly #spans = new Map<Stage, StageSpan>();
  #stage: Stage;
  #since = performance.now();

  constructor(first: Stage) {
    this.#stage = first;
  }

  get stage(): Stage {
    return this.#stage;
  }

  /** Ends the current stage, with what its processes used if that is known, and begins the next. */
  next(stage: Stage, usage: StageUsage = {}): void {
    const now = performance.now();
    const before = this.#spans.get(this.#stage);
    this.#spans.set(this.#stage, {
      stage: this.#stage,
      wallMs: (before?.wallMs ?? 0) + now - this.#since,
      ...sums(before ?? {}, usage),
    });
    const name = NAMES[this.#stage];
    if (name !== undefined && usage.cpuMs !== undefined) stageCpu.add(`sandbox-${name}`, usage.cpuMs);
    this.#stage = stage;
    this.#since = now;
  }

  /** Wall clock of a stage so far, milliseconds. */
  spentMs(stage: Stage): number {
    const running = stage === this.#stage ? performance.now() - this.#since : 0;
    return (this.#spans.get(stage)?.wallMs ?? 0) + running;
  }

  /** The stages that were entered, in the order of their first entry; the current one so far. */
  spans(): StageSpan[] {
    const current = {
      ...this.#spans.get(this.#stage),
      stage: this.#stage,
      wallMs: this.spentMs(this.#stage),
    };
    return [...new Map(this.#spans).set(this.#stage, current).values()];
  }
}

function sums(a: StageUsage, b: StageUsage): StageUsage {
  const pairs = MEASURED.flatMap((key) =>
    a[key] === undefined && b[key] === undefined ? [] : [[key, (a[key] ?? 0) + (b[key] ?? 0)]],
  );
  return Object.fromEntries(pairs);
}
