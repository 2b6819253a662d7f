/**
 * Owns where the raw output and the evidence of a run are kept, so that it can be graded again without running: in the
 * verdict when small, else as a content-addressed object.
 */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { type Content, ContentSchema } from "@mortise/contracts";
import type { Objects } from "@mortise/kernel";

/** Far below the bus's message limit: a verdict carries two. */
const INLINE_BYTES = 64 * 1024;

export class LogStore {
  readonly #objects: Objects;

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  /** Keeps the bytes; returns the reference a message carries. */
  async keep(bytes: Uint8Array): Promise<Content> {
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const size = BigInt(bytes.length);
    if (bytes.length <= INLINE_BYTES)
      return create(ContentSchema, { place: { case: "inline", value: bytes }, sha256, size });
    if (!(await this.#objects.has(sha256))) await this.#objects.put(sha256, bytes);
    return create(ContentSchema, { place: { case: "object", value: sha256 }, sha256, size });
  }

  /** As gzip. */
  keepCompressed(bytes: Uint8Array): Promise<Content> {
    return this.keep(gzipSync(bytes));
  }
}
