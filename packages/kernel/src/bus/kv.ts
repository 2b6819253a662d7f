/**
 * Owns a KV bucket: get, compare-and-set, deletion, watching with expiry.
 * Written on the bus's own publish, so that every write is retried under one message id: after a lost answer a
 * compare-and-set must not be reported as lost to itself.
 */
import type { MsgHdrs } from "@nats-io/nats-core";
import { randomToken } from "../crypto.js";
import type { Bus } from "./bus.js";
import { isWrongLastSequence, patiently } from "./failure.js";
import { lastBySubject } from "./last-by-subject.js";
import type { Following } from "./types.js";

export interface KvEntry {
  readonly value: Uint8Array;
  /** The sequence of the write; grows with every write to the bucket, which makes it a fencing token. */
  readonly revision: number;
}

export interface Kv {
  get(key: string): Promise<KvEntry | undefined>;
  /** Writes whatever is there; resolves to the revision. */
  put(key: string, value: Uint8Array): Promise<number>;
  /** Writes only if the key is absent, deleted or expired; undefined if another writer was first. */
  create(key: string, value: Uint8Array): Promise<number | undefined>;
  /** Writes only if the key is still at `revision`; undefined if another writer was first. */
  update(key: string, value: Uint8Array, revision: number): Promise<number | undefined>;
  delete(key: string): Promise<void>;
  /** Keys that are present; `filter` may hold `*` and `>` as subjects do. */
  keys(filter?: string): Promise<string[]>;
  /** As `keys`, with the values. At most 1024 keys; a bucket is not a table. */
  entries(filter?: string): Promise<Map<string, KvEntry>>;
  /** Tells what is there now and every change after; an entry of undefined is a deletion or an expiry. */
  watch(filter: string, onChange: (key: string, entry: KvEntry | undefined) => void): Promise<Following>;
}

const OPERATION = "KV-Operation";
/** Set by the server on the tombstone it writes when an entry expires. */
const MARKER_REASON = "Nats-Marker-Reason";

export function openKv(bus: Bus, bucket: string): Kv {
  return new BucketKv(bus, bucket);
}

class BucketKv implements Kv {
  readonly #bus: Bus;
  readonly #stream: string;
  readonly #prefix: string;

  constructor(bus: Bus, bucket: string) {
    this.#bus = bus;
    this.#stream = `KV_${bucket}`;
    this.#prefix = `$KV.${bucket}.`;
  }

  async get(key: string): Promise<KvEntry | undefined> {
    const stored = await this.#last(key);
    return stored === undefined || stored.isTombstone ? undefined : stored.entry;
  }

  async put(key: string, value: Uint8Array): Promise<number> {
    return (await this.#write(key, value)).sequence;
  }

  async create(key: string, value: Uint8Array): Promise<number | undefined> {
    const revision = await this.#writeAt(key, value, 0);
    if (revision !== undefined) return revision;
    const stored = await this.#last(key);
    return stored?.isTombstone ? this.#writeAt(key, value, stored.entry.revision) : undefined;
  }

  update(key: string, value: Uint8Array, revision: number): Promise<number | undefined> {
    return this.#writeAt(key, value, revision);
  }

  async delete(key: string): Promise<void> {
    await this.#write(key, new Uint8Array(), { headers: { [OPERATION]: "DEL" } });
  }

  async keys(filter = ">"): Promise<string[]> {
    return [...(await this.entries(filter)).keys()];
  }

  async entries(filter = ">"): Promise<Map<string, KvEntry>> {
    const where = this.#prefix + filter;
    const stored = await patiently(where, () =>
      lastBySubject(this.#bus.connection, this.#stream, where, this.#bus.inboxPrefix),
    );
    const present = stored.filter((message) => !isTombstone(message.headers));
    return new Map(
      present.map(({ subject, bytes, sequence }) => [
        this.#keyOf(subject),
        { value: new Uint8Array(bytes), revision: sequence },
      ]),
    );
  }

  watch(filter: string, onChange: (key: string, entry: KvEntry | undefined) => void): Promise<Following> {
    return this.#bus.followRaw({
      stream: this.#stream,
      filters: [this.#prefix + filter],
      from: "last-per-subject",
      onDelivery: ({ message, sequence }) => {
        const key = this.#keyOf(message.subject);
        onChange(
          key,
          isTombstone(message.headers)
            ? undefined
            : { value: new Uint8Array(message.data), revision: sequence },
        );
      },
    });
  }

  #keyOf(subject: string): string {
    return subject.slice(this.#prefix.length);
  }

  async #last(key: string): Promise<{ entry: KvEntry; isTombstone: boolean } | undefined> {
    const subject = this.#prefix + key;
    const query = { last_by_subj: subject };
    const stored = await patiently(subject, () => this.#bus.manager.direct.getMessage(this.#stream, query));
    if (stored === null) return undefined;
    return {
      entry: { value: new Uint8Array(stored.data), revision: stored.seq },
      isTombstone: isTombstone(stored.header),
    };
  }

  async #writeAt(key: string, value: Uint8Array, revision: number): Promise<number | undefined> {
    try {
      return (await this.#write(key, value, { expectLastSubjectSequence: revision })).sequence;
    } catch (error) {
      if (error instanceof Error && isWrongLastSequence(error.cause)) return undefined;
      throw error;
    }
  }

  #write(
    key: string,
    value: Uint8Array,
    extra: { expectLastSubjectSequence?: number; headers?: Record<string, string> } = {},
  ) {
    return this.#bus.publisher.publish({
      subject: this.#prefix + key,
      bytes: value,
      messageId: randomToken(12),
      ...extra,
    });
  }
}

function isTombstone(headers: MsgHdrs | undefined): boolean {
  if (headers === undefined) return false;
  const operation = headers.get(OPERATION);
  return operation === "DEL" || operation === "PURGE" || headers.has(MARKER_REASON);
}
