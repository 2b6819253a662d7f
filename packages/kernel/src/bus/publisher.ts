/**
 * Owns getting bytes onto a stream exactly once: the same message id at every attempt, so that a publish whose
 * acknowledgement was lost is recognised by the server.
 * Does not encode messages.
 */
import type { JetStreamClient, PubAck } from "@nats-io/jetstream";
import { Empty, headers as emptyHeaders, type MsgHdrs } from "@nats-io/nats-core";
import { retry } from "../retry.js";
import { currentTraceParent, TRACE_PARENT } from "../telemetry.js";
import { busError, isTransient, isWrongLastSequence } from "./failure.js";
import type { Published } from "./types.js";

/** Answers take well under a millisecond; the rest is an election or a restart, and the retry handles those. */
const ACK_TIMEOUT_MS = 3_000;
/** Longest outage a publish rides out before its caller is told, unless the caller says otherwise. */
const PATIENCE_MS = 60_000;

/** No message has this id: every id of ours names what it belongs to. */
const IMPOSSIBLE_ID = "-";

export interface RawPublish {
  readonly subject: string;
  readonly bytes: Uint8Array;
  readonly messageId: string;
  readonly expectLastSubjectSequence?: number | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly patienceMs?: number | undefined;
}

export class Publisher {
  readonly #jetstream: JetStreamClient;
  /** Publishes tried again, since the start. */
  retries = 0;

  constructor(jetstream: JetStreamClient) {
    this.#jetstream = jetstream;
  }

  /**
   * Resolves when the stream has stored the message. Throws MORTISE_TRANSPORT_FULL,
   * MORTISE_TRANSPORT_SEQUENCE_CONFLICT, MORTISE_TRANSPORT_DENIED, or MORTISE_TRANSPORT_UNAVAILABLE when its
   * patience is over.
   */
  async publish(message: RawPublish): Promise<Published> {
    const startedAt = performance.now();
    const patienceMs = message.patienceMs ?? PATIENCE_MS;
    const options = {
      msgID: message.messageId,
      timeout: ACK_TIMEOUT_MS,
      headers: headersOf(message),
      ...(message.expectLastSubjectSequence === undefined
        ? {}
        : { expect: { lastSubjectSequence: message.expectLastSubjectSequence } }),
    };
    const attempt = (n: number): Promise<PubAck> => {
      if (n > 0) this.retries++;
      return this.#jetstream.publish(message.subject, message.bytes, options);
    };
    try {
      const ack = await retry(attempt, {
        attempts: Infinity,
        baseMs: 50,
        maxMs: 2_000,
        isRetryable: (error) => isTransient(error) && performance.now() - startedAt < patienceMs,
      });
      return { sequence: ack.seq, duplicate: ack.duplicate };
    } catch (error) {
      const stored = isWrongLastSequence(error) ? await this.#findStored(message) : undefined;
      if (stored !== undefined) return stored;
      throw busError(error, message.subject);
    }
  }

  /**
   * The server compares the expected sequence before it looks for duplicates, so a message that is stored already
   * conflicts with itself. Asked again with an expectation that is checked after the duplicates and never holds,
   * it answers with the stored sequence or refuses; it can store nothing.
   */
  async #findStored(message: RawPublish): Promise<Published | undefined> {
    const expect = { lastMsgID: IMPOSSIBLE_ID };
    try {
      const ack = await this.#jetstream.publish(message.subject, Empty, {
        msgID: message.messageId,
        timeout: ACK_TIMEOUT_MS,
        expect,
      });
      return { sequence: ack.seq, duplicate: true };
    } catch {
      return undefined; // not stored under this id, or not to be learned now: the conflict stands
    }
  }
}

function headersOf(message: RawPublish): MsgHdrs {
  const headers = emptyHeaders();
  for (const [name, value] of Object.entries(message.headers ?? {})) headers.set(name, value);
  const traceParent = currentTraceParent();
  if (traceParent !== undefined) headers.set(TRACE_PARENT, traceParent);
  return headers;
}
