/**
 * Owns letting everything else in this process have its turn while a long list is worked off on its one thread: an
 * agent decides how long the list is. Knows nothing of what is worked off.
 */
import { setImmediate } from "node:timers/promises";

/** Some milliseconds of looking at files. */
const STEPS_A_TURN = 256;

export class Pace {
  #nSteps = 0;

  /** Call once an item. */
  async step(): Promise<void> {
    this.#nSteps += 1;
    if (this.#nSteps % STEPS_A_TURN === 0) await setImmediate();
  }
}
