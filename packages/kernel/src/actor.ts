/**
 * Owns the actor: a mailbox, one reducer, and effects at the edge.
 * Does not persist anything and does not supervise: state that must survive is derived from JetStream by the
 * service that owns the actor, and a fault is handed to its owner.
 *
 * A1  Messages are reduced one at a time, in the order they were sent.
 * A2  Effects of one message start, in order, after its reduction and before the next message is reduced.
 * A3  Nothing is swallowed: a reducer that throws and an effect that rejects both reach `onFault`.
 */
import { MortiseError } from "@mortise/contracts";

/** What a reducer returns: the next state and what is to be done about it. */
export interface Step<S, E> {
  readonly state: S;
  readonly effects: readonly E[];
}

export interface ActorOptions<S, M, E> {
  readonly name: string;
  readonly initial: S;
  /** Pure: no I/O, no clock, no randomness that is not in the message. */
  readonly reduce: (state: S, message: M) => Step<S, E>;
  /** Runs one effect. Effects run concurrently; results come back as messages through `self.send`. */
  readonly perform: (effect: E, self: { send(message: M): void }) => void | Promise<void>;
  readonly onFault: (error: unknown) => void;
  /** Longest mailbox before a send is refused; a mailbox that grows without bound hides a stalled reader. */
  readonly capacity?: number;
}

const DEFAULT_CAPACITY = 100_000;

export class Actor<S, M, E> {
  readonly #options: ActorOptions<S, M, E>;
  readonly #capacity: number;
  #mailbox: M[] = [];
  #state: S;
  #isScheduled = false;
  #isStopped = false;
  readonly #running = new Set<Promise<void>>();
  #idleWaiters: (() => void)[] = [];

  constructor(options: ActorOptions<S, M, E>) {
    this.#options = options;
    this.#capacity = options.capacity ?? DEFAULT_CAPACITY;
    this.#state = options.initial;
  }

  get state(): S {
    return this.#state;
  }

  /**
   * Puts a message in the mailbox; it is reduced in a later microtask, never inside this call.
   * A message to a stopped actor is dropped. Throws MORTISE_TRANSPORT_MAILBOX_FULL beyond the capacity.
   */
  send(message: M): void {
    if (this.#isStopped) return;
    if (this.#mailbox.length >= this.#capacity) {
      throw new MortiseError({
        code: "MORTISE_TRANSPORT_MAILBOX_FULL",
        message: `Actor ${this.#options.name} holds ${this.#capacity} unread messages.`,
        detail: { actor: this.#options.name, capacity: this.#capacity },
      });
    }
    this.#mailbox.push(message);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => this.#drain());
  }

  /** Resolves when the mailbox is empty and no effect is running. */
  idle(): Promise<void> {
    if (this.#isIdle()) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Drops unread messages, refuses new ones, and waits for the effects already started. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#mailbox = [];
    await Promise.allSettled(this.#running);
    this.#settle();
  }

  #isIdle(): boolean {
    return this.#mailbox.length === 0 && this.#running.size === 0 && !this.#isScheduled;
  }

  #drain(): void {
    // Taking the whole mailbox keeps a send O(1): shifting one by one is quadratic under a burst.
    while (this.#mailbox.length > 0 && !this.#isStopped) {
      const batch = this.#mailbox;
      this.#mailbox = [];
      for (const message of batch) {
        if (this.#isStopped) break;
        this.#receive(message);
      }
    }
    this.#isScheduled = false;
    this.#settle();
  }

  #receive(message: M): void {
    let step: Step<S, E>;
    try {
      step = this.#options.reduce(this.#state, message);
    } catch (error) {
      this.#options.onFault(error); // A3
      return;
    }
    this.#state = step.state;
    for (const effect of step.effects) this.#start(effect); // A2
  }

  #start(effect: E): void {
    try {
      const result = this.#options.perform(effect, this);
      if (result === undefined) return;
      const tracked: Promise<void> = result
        .catch((error: unknown) => this.#options.onFault(error))
        .then(() => {
          this.#running.delete(tracked);
          this.#settle();
        });
      this.#running.add(tracked);
    } catch (error) {
      this.#options.onFault(error); // A3
    }
  }

  #settle(): void {
    if (this.#idleWaiters.length === 0 || !this.#isIdle()) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}
