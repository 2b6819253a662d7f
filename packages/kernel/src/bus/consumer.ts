/**
 * Owns handling the messages of a durable consumer: heartbeats while a handler runs, and what becomes of a
 * message when it ends.
 *
 * D1  A message is acknowledged only after its handler resolved, and the acknowledgement is confirmed.
 * D2  A retryable failure gives the message back; any other failure, or the last allowed delivery, makes it a
 *     dead letter. Nothing disappears without one of the two.
 * D3  A message that does not decode is never shown to the handler.
 */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { MortiseError } from "@mortise/contracts";
import type { ConsumerInfo } from "@nats-io/jetstream";
import { dispositionOf, fromUnknown } from "../errors.js";
import type { Log } from "../log.js";
import { backoff } from "../retry.js";
import { continueTrace, isTraceRecorded, TRACE_PARENT, withSpan } from "../telemetry.js";
import type { Bus } from "./bus.js";
import type { Delivery } from "./delivery.js";
import { Pull } from "./pull.js";
import { decodeAs } from "./schema.js";
import type { ConsumeOptions, Consuming, Meta } from "./types.js";

const DEFAULT_ACK_WAIT_MS = 30_000;
const REDELIVERY = { baseMs: 500, maxMs: 15_000 };
const STOP_GRACE_MS = 10_000;

export class Consumer<D extends DescMessage> implements Consuming {
  readonly #bus: Bus;
  readonly #options: ConsumeOptions<D>;
  readonly #log: Log;
  readonly #maxDeliver: number;
  readonly #pull: Pull;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #abort = new AbortController();
  readonly #forgetReconnect: () => void;
  readonly #running = new Map<Delivery, Promise<void>>();
  #waiting: Delivery[] = [];
  #isStopped = false;

  constructor(bus: Bus, options: ConsumeOptions<D>, info: ConsumerInfo) {
    this.#bus = bus;
    this.#options = options;
    this.#log = bus.log.child({ stream: options.stream, consumer: options.durable });
    this.#maxDeliver = info.config.max_deliver ?? -1;
    const ackWaitMs = info.config.ack_wait === undefined ? DEFAULT_ACK_WAIT_MS : info.config.ack_wait / 1e6;
    this.#heartbeat = setInterval(() => this.#keepAlive(), ackWaitMs / 3);
    this.#pull = new Pull({
      connection: bus.connection,
      inboxPrefix: bus.inboxPrefix,
      stream: options.stream,
      consumer: options.durable,
      capacity: () => options.concurrency - this.#running.size - this.#waiting.length,
      refillAt: Math.max(1, Math.floor(options.concurrency / 4)),
      onDelivery: (delivery) => this.#take(delivery),
      onGone: () => this.#log.warn({ event: "consumer.gone" }),
      onStall: () => this.#log.warn({ event: "consumer.stalled" }),
    });
    this.#forgetReconnect = bus.onStatus((status) => {
      if (status.type === "reconnect") this.#pull.reset();
    });
  }

  async stop(graceMs = STOP_GRACE_MS): Promise<void> {
    this.#isStopped = true;
    this.#pull.stop();
    this.#forgetReconnect();
    for (const delivery of this.#waiting) delivery.nak(0);
    this.#waiting = [];
    const timer = setTimeout(() => this.#abort.abort(), graceMs);
    await Promise.all(this.#running.values());
    clearTimeout(timer);
    clearInterval(this.#heartbeat);
  }

  /** The acknowledgement wait runs from delivery, so what waits for a handler is kept alive too. */
  #keepAlive(): void {
    for (const delivery of this.#running.keys()) delivery.working();
    for (const delivery of this.#waiting) delivery.working();
  }

  #take(delivery: Delivery): void {
    if (this.#isStopped) {
      delivery.nak(0);
      return;
    }
    if (this.#running.size >= this.#options.concurrency) {
      this.#waiting.push(delivery);
      return;
    }
    const ended = this.#process(delivery).then(() => {
      this.#running.delete(delivery);
      const next = this.#waiting.shift();
      if (next !== undefined) this.#take(next);
      this.#pull.refill();
    });
    this.#running.set(delivery, ended);
  }

  /** Never rejects. */
  async #process(delivery: Delivery): Promise<void> {
    try {
      const failure = await this.#attempt(delivery);
      if (failure === undefined)
        await delivery.ack(); // D1
      else await this.#settle(delivery, failure.error);
    } catch (cause) {
      // Unanswered: it is delivered again when its acknowledgement wait is over, and handlers are idempotent.
      this.#log.error({ event: "message.unanswered", sequence: delivery.sequence, err: cause });
    }
  }

  async #attempt(delivery: Delivery): Promise<{ error: unknown } | undefined> {
    try {
      const { subject, data: bytes } = delivery.message;
      const message = decodeAs(this.#options.schema, { subject, sequence: delivery.sequence, bytes }); // D3
      const traceParent = delivery.message.headers?.get(TRACE_PARENT);
      await continueTrace(traceParent, () => this.#handle(message, delivery));
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  #handle(message: MessageShape<D>, delivery: Delivery): Promise<void> {
    const meta: Meta = {
      subject: delivery.message.subject,
      sequence: delivery.sequence,
      deliveries: delivery.deliveries,
      headers: delivery.message.headers,
      working: () => delivery.working(),
      signal: this.#abort.signal,
    };
    if (!isTraceRecorded()) return this.#options.handle(message, meta);
    const name = `${this.#options.stream}.${this.#options.durable}`;
    return withSpan(name, { sequence: meta.sequence }, () => this.#options.handle(message, meta));
  }

  /** D2 */
  async #settle(delivery: Delivery, error: unknown): Promise<void> {
    const disposition = dispositionOf(error);
    if (this.#abort.signal.aborted) {
      delivery.nak(0); // cut off by our own stop: another process takes it
      return;
    }
    const isLast = this.#maxDeliver > 0 && delivery.deliveries >= this.#maxDeliver;
    if (disposition === "retry" && !isLast) {
      const suggested = error instanceof MortiseError ? error.retryAfterMs : undefined;
      const delayMs = suggested ?? backoff(delivery.deliveries - 1, REDELIVERY);
      this.#log.warn({ event: "message.retried", sequence: delivery.sequence, delayMs, err: error });
      delivery.nak(delayMs);
      return;
    }
    this.#log.error({
      event: "message.dead",
      sequence: delivery.sequence,
      deliveries: delivery.deliveries,
      err: error,
    });
    await this.#bury(delivery, error);
    delivery.term(error instanceof MortiseError ? error.code : "handler failed");
  }

  async #bury(delivery: Delivery, error: unknown): Promise<void> {
    const { subject, data } = delivery.message;
    await this.#bus.bury({
      stream: this.#options.stream,
      consumer: this.#options.durable,
      sequence: delivery.sequence,
      subject,
      payload: data,
      error: fromUnknown(error, "MORTISE_TRANSPORT_INTERNAL"),
    });
  }
}
