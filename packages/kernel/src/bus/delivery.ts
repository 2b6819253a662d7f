/**
 * Owns one message as a pull consumer delivered it: where it is in the stream, and how it is answered.
 */
import type { Msg, NatsConnection } from "@nats-io/nats-core";
import { retry } from "../retry.js";
import { isTransient } from "./failure.js";

const ACK_TIMEOUT_MS = 2_000;
const ACK_ATTEMPTS = 4;
const NANOS_PER_MS = 1_000_000;

export class Delivery {
  readonly message: Msg;
  readonly sequence: number;
  /** Position among the consumer's deliveries, from 1; a gap means that something was lost on the way. */
  readonly consumerSequence: number;
  readonly deliveries: number;
  /** Messages still to come for this consumer when this one was sent. */
  readonly pending: number;
  readonly #connection: NatsConnection;

  constructor(connection: NatsConnection, message: Msg) {
    this.#connection = connection;
    this.message = message;
    const tokens = (message.reply ?? "").split(".");
    // $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>
    const first = tokens.length === 9 ? 4 : 6;
    this.deliveries = Number(tokens[first]);
    this.sequence = Number(tokens[first + 1]);
    this.consumerSequence = Number(tokens[first + 2]);
    this.pending = Number(tokens[first + 4]);
  }

  /** Acknowledges and waits for the server's word: a plain acknowledgement can be lost in a restart. */
  async ack(): Promise<void> {
    await retry(() => this.#connection.request(this.message.reply!, "+ACK", { timeout: ACK_TIMEOUT_MS }), {
      attempts: ACK_ATTEMPTS,
      baseMs: 100,
      maxMs: 2_000,
      isRetryable: isTransient,
    });
  }

  /** Asks for another delivery after `delayMs`, to this or another process. */
  nak(delayMs: number): void {
    const delay = Math.round(delayMs * NANOS_PER_MS);
    this.#respond(delay > 0 ? `-NAK {"delay": ${delay}}` : "-NAK");
  }

  /** Asks for no other delivery. */
  term(reason: string): void {
    this.#respond(`+TERM ${reason.replaceAll(/[\r\n]+/g, " ").slice(0, 200)}`);
  }

  working(): void {
    this.#respond("+WPI");
  }

  #respond(body: string): void {
    if (!this.#connection.isClosed()) this.#connection.publish(this.message.reply!, body);
  }
}
