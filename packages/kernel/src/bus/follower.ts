/**
 * Owns reading a stream in order without acknowledging: an ephemeral consumer that is made again, from the next
 * message, whenever it is lost.
 * Does not decode (see bus.ts) and keeps no position across restarts: state is derived by reading from the start.
 *
 * F1  Messages are handled one at a time, in stream order, none twice and none left out.
 * F2  A handler that throws ends the follower: state derived past an unhandled message would be wrong.
 */
import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  type JetStreamManager,
  ReplayPolicy,
} from "@nats-io/jetstream";
import { nuid } from "@nats-io/nats-core";
import { dispositionOf } from "../errors.js";
import { retry } from "../retry.js";
import type { Bus } from "./bus.js";
import type { Delivery } from "./delivery.js";
import { patiently } from "./failure.js";
import { Pull } from "./pull.js";
import type { Following } from "./types.js";

/** Messages asked for ahead of the handler. */
const WINDOW = 256;
/** How long the server keeps the consumer of a process that vanished. */
const INACTIVE_MS = 60_000;
const NANOS_PER_MS = 1_000_000;

export type StartAt = "first" | "new" | "last-per-subject" | { readonly sequence: number };

export interface FollowerOptions {
  readonly stream: string;
  readonly filters: readonly string[];
  readonly from: StartAt;
  readonly onDelivery: (delivery: Delivery) => void | Promise<void>;
  readonly onFault: (error: unknown) => void;
}

export class Follower implements Following {
  readonly caughtUp: Promise<void>;
  readonly #bus: Bus;
  readonly #manager: JetStreamManager;
  readonly #options: FollowerOptions;
  readonly #resolveCaughtUp: () => void;
  readonly #abort = new AbortController();
  readonly #forgetReconnect: () => void;
  #name = "";
  #pull: Pull | undefined;
  /** Last sequence handed to the queue; what a new consumer starts after. */
  #cursor: number | undefined;
  #consumerSequence = 0;
  #queue: Delivery[] = [];
  #isWorking = false;
  #worked: Promise<void> = Promise.resolve();
  #isRenewing = false;

  constructor(bus: Bus, manager: JetStreamManager, options: FollowerOptions) {
    this.#bus = bus;
    this.#manager = manager;
    this.#options = options;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.caughtUp = promise;
    this.#resolveCaughtUp = resolve;
    this.#forgetReconnect = bus.onStatus((status) => {
      // The consumer lives in the server's memory: after a restart it is gone, after a mere cut it is not.
      if (status.type === "reconnect") this.#pull?.reset();
    });
  }

  /** Makes the first consumer. Throws if the stream does not exist or may not be read. */
  async start(): Promise<void> {
    await this.#create();
  }

  async stop(): Promise<void> {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort();
    this.#pull?.stop();
    this.#forgetReconnect();
    this.#queue = [];
    await this.#worked;
    this.#drop();
  }

  async #create(): Promise<void> {
    const name = `follow_${nuid.next()}`;
    const info = await patiently(this.#options.stream, () =>
      this.#manager.consumers.add(this.#options.stream, this.#configuration(name)),
    );
    this.#name = name;
    this.#consumerSequence = 0;
    // "new" fixes its place here, so that nothing published between two consumers is missed.
    if (this.#options.from === "new") this.#cursor ??= info.delivered.stream_seq;
    if (info.num_pending === 0 && this.#queue.length === 0) this.#resolveCaughtUp();
    this.#pull = new Pull({
      connection: this.#bus.connection,
      inboxPrefix: this.#bus.inboxPrefix,
      stream: this.#options.stream,
      consumer: name,
      capacity: () => WINDOW - this.#queue.length,
      refillAt: WINDOW / 2,
      onDelivery: (delivery) => this.#enqueue(delivery),
      onDry: () => this.#noteDry(),
      onGone: () => this.#renew("gone"),
      onStall: () => this.#renew("stalled"),
    });
  }

  #configuration(name: string): Partial<ConsumerConfig> {
    const { filters } = this.#options;
    return {
      name,
      ack_policy: AckPolicy.None,
      replay_policy: ReplayPolicy.Instant,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: INACTIVE_MS * NANOS_PER_MS,
      ...(filters.length === 1 ? { filter_subject: filters[0]! } : { filter_subjects: [...filters] }),
      ...this.#startAt(),
    };
  }

  #startAt(): Pick<ConsumerConfig, "deliver_policy" | "opt_start_seq"> {
    const { from } = this.#options;
    const next = this.#cursor === undefined ? undefined : this.#cursor + 1;
    if (next !== undefined) return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: next };
    if (from === "first") return { deliver_policy: DeliverPolicy.All };
    if (from === "new") return { deliver_policy: DeliverPolicy.New };
    if (from === "last-per-subject") return { deliver_policy: DeliverPolicy.LastPerSubject };
    return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: Math.max(1, from.sequence) };
  }

  #enqueue(delivery: Delivery): void {
    if (this.#abort.signal.aborted || this.#isRenewing) return;
    if (delivery.consumerSequence !== this.#consumerSequence + 1) {
      this.#renew("gap"); // F1
      return;
    }
    this.#consumerSequence = delivery.consumerSequence;
    this.#cursor = delivery.sequence;
    this.#queue.push(delivery);
    if (!this.#isWorking) this.#worked = this.#work();
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    try {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
        const handled = this.#options.onDelivery(next);
        if (handled !== undefined) await handled;
        if (next.pending === 0 && this.#queue.length === 0) this.#resolveCaughtUp();
        this.#pull?.refill();
      }
    } catch (error) {
      this.#fail(error); // F2
    } finally {
      this.#isWorking = false;
    }
  }

  #noteDry(): void {
    // What was pending at the start may have been removed since and never arrive.
    if (this.#queue.length === 0 && !this.#isWorking) this.#resolveCaughtUp();
  }

  #renew(reason: string): void {
    if (this.#isRenewing || this.#abort.signal.aborted) return;
    this.#isRenewing = true;
    this.#bus.log.info({
      event: "follower.renewed",
      stream: this.#options.stream,
      reason,
      after: this.#cursor,
    });
    this.#pull?.stop();
    this.#drop();
    retry(() => this.#create(), {
      attempts: Infinity,
      baseMs: 100,
      maxMs: 2_000,
      signal: this.#abort.signal,
      isRetryable: (error) => dispositionOf(error) === "retry",
    })
      .catch((error: unknown) => {
        if (!this.#abort.signal.aborted) this.#fail(error);
      })
      .finally(() => {
        this.#isRenewing = false;
      });
  }

  /** Frees the consumer at the server; one that is gone already, or unreachable, is freed by its threshold. */
  #drop(): void {
    this.#manager.consumers.delete(this.#options.stream, this.#name).catch(() => {});
  }

  #fail(error: unknown): void {
    this.#abort.abort();
    this.#pull?.stop();
    this.#forgetReconnect();
    this.#queue = [];
    this.#options.onFault(error);
  }
}
