/**
 * Owns the bus a service sees: typed publish, consume, follow and get on JetStream, with the defaults that
 * measurements asked for. Does not define any stream (contracts) or create them (topology.ts).
 */
import { create, type DescMessage, isMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { DeadLetterSchema, inboxPrefix, MortiseError, subject as subjects } from "@mortise/contracts";
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection, Status } from "@nats-io/nats-core";
import type { Log } from "../log.js";
import { openConnection } from "./connection.js";
import { Consumer } from "./consumer.js";
import type { Delivery } from "./delivery.js";
import { patiently } from "./failure.js";
import { Follower, type FollowerOptions } from "./follower.js";
import { type Kv, openKv } from "./kv.js";
import { type Objects, openObjects } from "./objects.js";
import { Publisher } from "./publisher.js";
import { decodeAs } from "./schema.js";
import type {
  BusOptions,
  ConsumeOptions,
  Consuming,
  Following,
  FollowOptions,
  Meta,
  Published,
  PublishOptions,
} from "./types.js";

/** Header that names the protobuf type of a message. */
export const TYPE_HEADER = "Mortise-Type";

/** A message that could not be handled, on its way to the DLQ. */
export interface Burial {
  readonly stream: string;
  readonly consumer: string;
  readonly sequence: number;
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly error: MortiseError;
}

const DEAD_LETTER_OVERHEAD_BYTES = 8 * 1024;

/** Connects and checks the server. See `openConnection` for the errors. */
export async function connectBus(options: BusOptions): Promise<Bus> {
  const connection = await openConnection(options);
  const client = jetstream(connection);
  // Asking for account information at every start needs a permission no service has otherwise.
  const manager = await jetstreamManager(connection, { checkAPI: false });
  return new Bus(connection, client, manager, options);
}

export class Bus {
  readonly connection: NatsConnection;
  readonly log: Log;
  /** For topology.ts and the storage modules; services use the typed methods. */
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;
  readonly publisher: Publisher;
  /** Replies to this user; nobody else may subscribe to it. */
  readonly inboxPrefix: string;
  readonly #onFault: (error: unknown) => void;
  readonly #statusListeners = new Set<(status: Status) => void>();
  readonly #kvs = new Map<string, Kv>();
  readonly #objects = new Map<string, Promise<Objects>>();

  constructor(
    connection: NatsConnection,
    client: JetStreamClient,
    manager: JetStreamManager,
    options: BusOptions,
  ) {
    this.connection = connection;
    this.client = client;
    this.manager = manager;
    this.log = options.log;
    this.publisher = new Publisher(client);
    this.inboxPrefix = inboxPrefix(options.user);
    this.#onFault = options.onFault ?? ((error) => this.log.error({ event: "bus.fault", err: error }));
    void this.#watchStatus();
  }

  /** Stores a message on the stream its subject belongs to. See `Publisher.publish` for the errors. */
  publish<D extends DescMessage>(options: PublishOptions<D>): Promise<Published> {
    const { schema, message } = options;
    const complete = isMessage(message, schema) ? message : create(schema, message as never);
    return this.publisher.publish({
      subject: options.subject,
      bytes: toBinary(schema, complete as MessageShape<D>),
      messageId: options.dedupeId,
      expectLastSubjectSequence: options.expectLastSubjectSequence,
      patienceMs: options.patienceMs,
      headers: { [TYPE_HEADER]: schema.typeName },
    });
  }

  /** Starts handling a durable consumer's messages; the durable exists already. */
  async consume<D extends DescMessage>(options: ConsumeOptions<D>): Promise<Consuming> {
    const { stream, durable } = options;
    const info = await patiently(`${stream}/${durable}`, () => this.manager.consumers.info(stream, durable));
    return new Consumer(this, options, info);
  }

  /** Reads a stream in order, first what is stored and then what comes. */
  follow<D extends DescMessage>(options: FollowOptions<D>): Promise<Following> {
    const signal = new AbortController().signal;
    return this.followRaw({
      ...options,
      onFault: options.onFault ?? this.#onFault,
      onDelivery: (delivery) => {
        const message = this.#decodeOrBury(options, delivery);
        return message instanceof Promise ? message : options.onMessage(message, metaOf(delivery, signal));
      },
    });
  }

  /** As `follow`, with bytes. */
  async followRaw(options: Omit<FollowerOptions, "onFault"> & Partial<FollowerOptions>): Promise<Following> {
    const follower = new Follower(this, this.manager, { onFault: this.#onFault, ...options });
    await follower.start();
    return follower;
  }

  /** The message at a sequence. Throws MORTISE_TRANSPORT_NOT_FOUND or MORTISE_TRANSPORT_DECODE. */
  async at<D extends DescMessage>(stream: string, sequence: number, schema: D): Promise<MessageShape<D>> {
    const where = `${stream} at sequence ${sequence}`;
    const stored = await patiently(where, () => this.manager.direct.getMessage(stream, { seq: sequence }));
    if (stored === null) throw new MortiseError({ code: "MORTISE_TRANSPORT_NOT_FOUND", message: where });
    return decodeAs(schema, { subject: stored.subject, sequence, bytes: stored.data });
  }

  /** The last message on a subject, or undefined if there is none. */
  async last<D extends DescMessage>(
    stream: string,
    subject: string,
    schema: D,
  ): Promise<{ message: MessageShape<D>; sequence: number } | undefined> {
    const query = { last_by_subj: subject };
    const stored = await patiently(subject, () => this.manager.direct.getMessage(stream, query));
    if (stored === null) return undefined;
    const message = decodeAs(schema, { subject: stored.subject, sequence: stored.seq, bytes: stored.data });
    return { message, sequence: stored.seq };
  }

  /** A KV bucket; nothing is asked of the server until it is used. */
  async kv(bucket: string): Promise<Kv> {
    const known = this.#kvs.get(bucket) ?? openKv(this, bucket);
    this.#kvs.set(bucket, known);
    return known;
  }

  /** An object bucket. */
  objects(bucket: string): Promise<Objects> {
    const known = this.#objects.get(bucket) ?? openObjects(this, bucket);
    this.#objects.set(bucket, known);
    return known;
  }

  /** Calls `listener` at every change of the connection; the returned function ends that. */
  onStatus(listener: (status: Status) => void): () => void {
    this.#statusListeners.add(listener);
    return () => this.#statusListeners.delete(listener);
  }

  /** Stores a message that cannot be handled as a dead letter. The same message is stored once. */
  async bury(burial: Burial): Promise<void> {
    const { stream, consumer, sequence, subject, payload, error } = burial;
    const room = (this.connection.info?.max_payload ?? Infinity) - DEAD_LETTER_OVERHEAD_BYTES;
    await this.publish({
      subject: subjects.deadLetter(stream),
      schema: DeadLetterSchema,
      message: {
        stream,
        sequence: BigInt(sequence),
        subject,
        consumer,
        code: error.code,
        reason: error.message,
        // A message as large as the limit does not fit with its reason; the sequence still names it.
        payload: payload.length <= room ? payload : new Uint8Array(),
        atMs: BigInt(Date.now()),
      },
      dedupeId: `dlq/${stream}/${consumer}/${sequence}`,
    });
  }

  /** Sends what is buffered and closes. Stop consumers first, so that their answers are sent. */
  async close(): Promise<void> {
    if (!this.connection.isClosed()) await this.connection.drain();
  }

  /** A follower skips what does not decode, and leaves it where an operator finds it. */
  #decodeOrBury<D extends DescMessage>(
    options: FollowOptions<D>,
    delivery: Delivery,
  ): MessageShape<D> | Promise<void> {
    const { subject, data: bytes } = delivery.message;
    const { sequence } = delivery;
    try {
      return decodeAs(options.schema, { subject, sequence, bytes });
    } catch (error) {
      this.log.error({ event: "message.dead", stream: options.stream, subject, sequence, err: error });
      const { stream } = options;
      const known = error as MortiseError;
      return this.bury({ stream, consumer: "", sequence, subject, payload: bytes, error: known }).catch(
        (cause: unknown) => {
          this.log.error({ event: "message.unburied", stream, sequence, err: cause });
        },
      );
    }
  }

  async #watchStatus(): Promise<void> {
    for await (const status of this.connection.status()) {
      if (status.type !== "ping") this.log.info({ event: `nats.${status.type}` });
      for (const listener of this.#statusListeners) listener(status);
    }
  }
}

function metaOf(delivery: Delivery, signal: AbortSignal): Meta {
  return {
    subject: delivery.message.subject,
    sequence: delivery.sequence,
    deliveries: delivery.deliveries,
    headers: delivery.message.headers,
    working: () => {},
    signal,
  };
}
