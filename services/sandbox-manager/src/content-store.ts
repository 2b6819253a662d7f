/**
 * Owns bytes that may be too large for a message: inline below a limit, otherwise an object named by its digest.
 * Does not delete objects; the archiver decides when a run's objects may go.
 */
import type { Content } from "@mortise/contracts";
import { MortiseError } from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import { sha256 } from "./patch/patch.js";

const BUCKET = "blobs";
/** Far below the bus's message limit, and above nearly every patch. */
const INLINE_BYTES = 256 * 1024;
/** Every trial's report carries one: a reference is smaller than this. */
const RECORD_INLINE_BYTES = 256;
const REMEMBERED_RECORDS = 4096;

/** What a message carries of some bytes. */
export type ContentInit = Pick<Content, "sha256" | "size" | "place">;

/** Stores bytes where they belong. The same bytes are stored once. */
export async function putContent(
  bus: Bus,
  bytes: Uint8Array,
  inlineBytes: number = INLINE_BYTES,
): Promise<ContentInit> {
  const digest = sha256(bytes);
  const size = BigInt(bytes.byteLength);
  if (bytes.byteLength <= inlineBytes)
    return { sha256: digest, size, place: { case: "inline", value: Buffer.from(bytes) } };
  const objects = await bus.objects(BUCKET);
  if (!(await objects.has(digest))) await objects.put(digest, bytes);
  return { sha256: digest, size, place: { case: "object", value: digest } };
}

/** Reports that are the same for many trials: an object each, asked for once. */
export class RecordStore {
  readonly #bus: Bus;
  readonly #stored = new Map<string, Promise<ContentInit>>();

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** Stores a value as JSON. Values that are equal share one object. */
  put(value: unknown): Promise<ContentInit> {
    const bytes = Buffer.from(JSON.stringify(value));
    const digest = sha256(bytes);
    const known = this.#stored.get(digest);
    if (known !== undefined) return known;
    const storing = putContent(this.#bus, bytes, RECORD_INLINE_BYTES);
    this.#stored.set(digest, storing);
    storing.catch(() => this.#stored.delete(digest));
    for (const oldest of this.#stored.keys()) {
      if (this.#stored.size <= REMEMBERED_RECORDS) break;
      this.#stored.delete(oldest);
    }
    return storing;
  }
}

/** The bytes, checked. Throws MORTISE_SANDBOX_PATCH when they are absent or not what the digest says. */
export async function getContent(bus: Bus, content: Content): Promise<Uint8Array> {
  const bytes = await bytesOf(bus, content);
  if (bytes === undefined || sha256(bytes) !== content.sha256)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_PATCH",
      message: `the content differs from its digest ${content.sha256}`,
    });
  return bytes;
}

async function bytesOf(bus: Bus, { place }: Content): Promise<Uint8Array | undefined> {
  if (place.case === "inline") return place.value;
  if (place.case === "object") return (await bus.objects(BUCKET)).get(place.value);
  return undefined;
}
