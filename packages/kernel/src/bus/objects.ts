/**
 * Owns object buckets: whole byte arrays by name, digest-checked by the client library.
 * Not for many gigabytes: those travel by HTTP range or shared storage behind the same manifest.
 */
import { MortiseError } from "@mortise/contracts";
import { type ObjectStore, Objm, setSha256Backend } from "@nats-io/obj";
import type { Bus } from "./bus.js";
import { patiently } from "./failure.js";

export interface Objects {
  /** Stores bytes under a name, replacing what was there. */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** Throws MORTISE_TRANSPORT_NOT_FOUND when there is nothing under the name. */
  get(name: string): Promise<Uint8Array>;
  has(name: string): Promise<boolean>;
  delete(name: string): Promise<void>;
}

/** Eight times the throughput of the default 128 KiB, measured. */
const CHUNK_BYTES = 1024 * 1024;
const NO_SUCH_OBJECT = /not found/i;

// The library's own SHA-256 is JavaScript and an order of magnitude slower than OpenSSL's.
setSha256Backend("native");

export async function openObjects(bus: Bus, bucket: string): Promise<Objects> {
  const store = await new Objm(bus.client).open(bucket, false);
  return new BucketObjects(store, bucket);
}

class BucketObjects implements Objects {
  readonly #store: ObjectStore;
  readonly #bucket: string;

  constructor(store: ObjectStore, bucket: string) {
    this.#store = store;
    this.#bucket = bucket;
  }

  async put(name: string, bytes: Uint8Array): Promise<void> {
    const meta = { name, options: { max_chunk_size: CHUNK_BYTES } };
    await this.#attempt(name, () => this.#store.putBlob(meta, bytes));
  }

  async get(name: string): Promise<Uint8Array> {
    const bytes = await this.#attempt(name, () => this.#store.getBlob(name));
    if (bytes !== null) return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
    throw new MortiseError({
      code: "MORTISE_TRANSPORT_NOT_FOUND",
      message: `Object ${this.#bucket}/${name}.`,
    });
  }

  async has(name: string): Promise<boolean> {
    const info = await this.#attempt(name, () => this.#store.info(name));
    return info !== null && !info.deleted;
  }

  async delete(name: string): Promise<void> {
    await this.#attempt(name, async () => {
      try {
        await this.#store.delete(name);
      } catch (error) {
        if (!(error instanceof Error && NO_SUCH_OBJECT.test(error.message))) throw error;
      }
    });
  }

  /** Every operation here can be repeated: names are content digests or belong to one writer. */
  #attempt<T>(name: string, operation: () => Promise<T>): Promise<T> {
    return patiently(`Object ${this.#bucket}/${name}`, operation);
  }
}
