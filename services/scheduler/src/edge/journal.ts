/**
 * Owns the scheduler's log: appends transitions to each trial's subject in order, under the fence.
 * Does not decide what to log (run/) and does not read the log back (recovery/).
 *
 * J1  Appends to one trial are stored in order, each naming the sequence before it; trials do not wait for each
 *     other.
 * J2  What an append explains leaves only after it is stored (`settled`): a restart never meets work that the
 *     log does not know of.
 * J3  A subject that moved under a higher fence means that the lease is lost: fatal. One that moved under a lower
 *     fence was written by a scheduler that had lost it: the append is repeated after it.
 * J4  A full stream loses nothing: the append waits and the run is told to launch no more.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { MortiseError, subject, TrialState, TrialTransitionSchema } from "@mortise/contracts";
import { type Bus, backoff, type Clock, dispositionOf, sleep, withTrace } from "@mortise/kernel";

export type TransitionInit = MessageInitShape<typeof TrialTransitionSchema> & {
  readonly trial: string;
  readonly state: TrialState;
};

export interface JournalOptions {
  readonly bus: Bus;
  readonly run: string;
  readonly fence: bigint;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Last sequence of trial subjects the log already holds. */
  readonly sequences: ReadonlyMap<string, number>;
  onStorage(isFull: boolean): void;
  /** The lease is lost, or the bus refuses for a reason that waiting does not cure. */
  onFatal(error: unknown): void;
}

const RETRY = { baseMs: 100, maxMs: 5_000 };

interface Line {
  sequence: number;
  tail: Promise<void>;
}

export class Journal {
  readonly #options: JournalOptions;
  readonly #lines = new Map<string, Line>();
  #nFull = 0;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** Queues one transition. The line of a closed trial is forgotten once stored. */
  append(transition: TransitionInit): void {
    const line = this.#lineOf(transition.trial);
    line.tail = line.tail.then(async () => {
      await this.#store(line, transition);
      if (transition.state === TrialState.CLOSED) this.#lines.delete(transition.trial);
    });
    line.tail.catch((error: unknown) => {
      if (!this.#options.signal.aborted) this.#options.onFatal(error);
    });
  }

  /** Resolves when everything appended for the trial so far is stored; rejects when something cannot be (J2). */
  settled(trial: string): Promise<void> {
    return this.#lines.get(trial)?.tail ?? Promise.resolve();
  }

  #lineOf(trial: string): Line {
    let line = this.#lines.get(trial);
    if (line === undefined) {
      line = { sequence: this.#options.sequences.get(trial) ?? 0, tail: Promise.resolve() };
      this.#lines.set(trial, line);
    }
    return line;
  }

  async #store(line: Line, transition: TransitionInit): Promise<void> {
    const { bus, run, fence, clock, signal } = this.#options;
    const { trial, state } = transition;
    for (let attempt = 0, conflicts = 0; ; attempt++) {
      try {
        const published = await withTrace(`${run}/${trial}`, () =>
          bus.publish({
            subject: subject.trialState(run, trial),
            schema: TrialTransitionSchema,
            message: { ...transition, run, fence },
            dedupeId: `${run}/${trial}/${state}/${fence}/${conflicts}`,
            expectLastSubjectSequence: line.sequence,
          }),
        );
        line.sequence = published.sequence;
        return;
      } catch (error) {
        if (isConflict(error)) {
          line.sequence = await this.#sequenceAfterConflict(trial, error);
          conflicts++;
          continue;
        }
        if (dispositionOf(error) !== "retry") throw error;
        await this.#waitForRoom(error, () => sleep(backoff(attempt, RETRY), clock, signal)); // J4
      }
    }
  }

  /** J3 */
  async #sequenceAfterConflict(trial: string, conflict: unknown): Promise<number> {
    const { bus, run, fence } = this.#options;
    const last = await bus.last("TRIALS", subject.trialState(run, trial), TrialTransitionSchema);
    if (last === undefined) return 0;
    if (last.message.fence >= fence) {
      throw new MortiseError({
        code: "MORTISE_TRANSPORT_FENCED",
        message: `${subject.trialState(run, trial)} holds fence ${last.message.fence}, ours is ${fence}.`,
        cause: conflict,
      });
    }
    return last.sequence;
  }

  async #waitForRoom(error: unknown, wait: () => Promise<void>): Promise<void> {
    const isFull = error instanceof MortiseError && error.code === "MORTISE_TRANSPORT_FULL";
    if (isFull && this.#nFull++ === 0) this.#options.onStorage(true);
    try {
      await wait();
    } finally {
      if (isFull && --this.#nFull === 0) this.#options.onStorage(false);
    }
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof MortiseError && error.code === "MORTISE_TRANSPORT_SEQUENCE_CONFLICT";
}
