/**
 * Owns the pull protocol of one consumer: how many messages are asked for, what the server says about them, and
 * noticing that it has fallen silent.
 * Does not decode, acknowledge or create consumers.
 *
 * The client library's `consume` asks again as soon as messages arrive, handled or not: one process would hoard
 * a work queue while its acknowledgement waits run out. Here only what can be handled now is asked for.
 *
 * P1  Asked for + buffered + being handled never exceeds what the owner wants, except after a reset.
 * P2  Every request carries max_bytes: the server cuts a connection with more than 64 MiB outstanding.
 * P3  Silence is detected: a request is answered, ended or heartbeaten, or it is made again.
 */
import { createInbox, type Msg, type NatsConnection, type Subscription } from "@nats-io/nats-core";
import { backoff } from "../retry.js";
import { Delivery } from "./delivery.js";

const EXPIRES_MS = 4_000;
const HEARTBEAT_MS = 2_000;
/** Two heartbeats and some slack. */
const SILENCE_MS = 5_000;
const WATCH_INTERVAL_MS = 1_000;
/** Pause after an answer that did not say how much was left: asking at once would spin. Doubles up to a limit. */
const CALM = { baseMs: 250, maxMs: 5_000 };
const MIN_MAX_BYTES = 4 * 1024 * 1024;
const NANOS_PER_MS = 1_000_000;

const STATUS_HEARTBEAT = 100;
const STATUS_TIMEOUT = 408;
const PENDING_MESSAGES = "Nats-Pending-Messages";

export interface PullOptions {
  readonly connection: NatsConnection;
  readonly inboxPrefix: string;
  readonly stream: string;
  readonly consumer: string;
  /** How many more messages the owner can take, not counting those asked for. */
  readonly capacity: () => number;
  /** Ask again only for at least this many, unless nothing is asked for: requests cost as much as messages. */
  readonly refillAt: number;
  readonly onDelivery: (delivery: Delivery) => void;
  /** A request ended unfilled: the server has nothing more at this moment. */
  readonly onDry?: () => void;
  /** The consumer does not exist or nobody answers for it. */
  readonly onGone?: () => void;
  /** The server fell silent and the requests are made again. */
  readonly onStall?: () => void;
}

export class Pull {
  readonly #options: PullOptions;
  readonly #subject: string;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #watch: NodeJS.Timeout;
  #calm: NodeJS.Timeout | undefined;
  #refusals = 0;
  #asked = 0;
  #heardAt = performance.now();
  #isStopped = false;

  constructor(options: PullOptions) {
    this.#options = options;
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${options.stream}.${options.consumer}`;
    this.#inbox = createInbox(options.inboxPrefix);
    this.#subscription = options.connection.subscribe(this.#inbox, {
      callback: (error, message) => {
        if (error === null) this.#receive(message);
        else options.onGone?.();
      },
    });
    this.#watch = setInterval(() => this.#checkSilence(), WATCH_INTERVAL_MS);
    this.refill();
  }

  /** Asks for what the owner can take now. Call after every handled message. */
  refill(): void {
    if (this.#isStopped || this.#calm !== undefined) return;
    const wanted = this.#options.capacity() - this.#asked; // P1
    if (wanted <= 0 || (this.#asked > 0 && wanted < this.#options.refillAt)) return;
    if (this.#asked === 0) this.#heardAt = performance.now();
    this.#asked += wanted;
    const request = {
      batch: wanted,
      max_bytes: this.#maxBytes(),
      expires: EXPIRES_MS * NANOS_PER_MS,
      idle_heartbeat: HEARTBEAT_MS * NANOS_PER_MS,
    };
    this.#options.connection.publish(this.#subject, JSON.stringify(request), { reply: this.#inbox });
  }

  /** Forgets what was asked for and asks again: after a reconnect the server has forgotten it too. */
  reset(): void {
    this.#asked = 0;
    this.refill();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#watch);
    clearTimeout(this.#calm);
    this.#subscription.unsubscribe();
  }

  #maxBytes(): number {
    return Math.max(MIN_MAX_BYTES, 2 * (this.#options.connection.info?.max_payload ?? 0)); // P2
  }

  #receive(message: Msg): void {
    this.#heardAt = performance.now();
    // A delivered message keeps its own subject; only the server's remarks arrive under the inbox's name.
    if (message.subject === this.#inbox) {
      this.#note(message);
      return;
    }
    this.#refusals = 0;
    this.#asked = Math.max(0, this.#asked - 1);
    this.#options.onDelivery(new Delivery(this.#options.connection, message));
    this.refill();
  }

  #note(message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === STATUS_HEARTBEAT) return;
    const unfilled = message.headers?.get(PENDING_MESSAGES) ?? "";
    if (unfilled !== "") {
      this.#refusals = 0;
      this.#asked = Math.max(0, this.#asked - Number(unfilled));
      // Only a request that timed out says so: one may also end because it is filled, or its bytes are.
      if (code === STATUS_TIMEOUT && Number(unfilled) > 0) this.#options.onDry?.();
      this.refill();
      return;
    }
    // 404, 503 and the 409s without a count end every request: deleted consumer, new leader, shutdown.
    this.#asked = 0;
    this.#calmDown();
    const isDeleted = code === 409 && /consumer deleted/i.test(message.headers?.description ?? "");
    if (code === 503 || code === 404 || isDeleted) this.#options.onGone?.();
  }

  #calmDown(): void {
    clearTimeout(this.#calm);
    this.#calm = setTimeout(
      () => {
        this.#calm = undefined;
        this.refill();
      },
      backoff(this.#refusals++, CALM),
    );
  }

  #checkSilence(): void {
    if (this.#asked === 0 || performance.now() - this.#heardAt < SILENCE_MS) return; // P3
    this.#heardAt = performance.now();
    this.#options.onStall?.();
    this.reset();
  }
}
