/** Owns the times of a trial's stages: one stage at a time, wall clock always, CPU where it was measured (C10). */
import { type Stage, Stage as Stages } from "@mortise/contracts";
import { stageCpu } from "@mortise/kernel";

export interface StageSpan {
  readonly stage: Stage;
  readonly wallMs: number;
  readonly cpuMs?: number;
}

const NAMES: Partial<Record<Stage, string>> = {
  [Stages.SETUP]: "setup",
  [Stages.AGENT]: "agent",
  [Stages.VERIFY]: "verify",
  [Stages.CLEANUP]: "cleanup",
};

export class StageClock {
  readonly #spans: StageSpan[] = [];
  #stage: Stage;
  #since = performance.now();

  constructor(first: Stage) {
    this.#stage = first;
  }

  /** Ends the current stage, with the CPU time its processes used if that is known, and begins the next. */
  next(stage: Stage, cpuMs?: number): void {
    const now = performance.now();
    this.#spans.push({
      stage: this.#stage,
      wallMs: now - this.#since,
      ...(cpuMs === undefined ? {} : { cpuMs }),
    });
    const name = NAMES[this.#stage];
    if (name !== undefined && cpuMs !== undefined) stageCpu.add(`sandbox-${name}`, cpuMs);
    this.#stage = stage;
    this.#since = now;
  }

  /** The stages that ended, and the current one so far. */
  spans(): StageSpan[] {
    return [...this.#spans, { stage: this.#stage, wallMs: performance.now() - this.#since }];
  }
}
