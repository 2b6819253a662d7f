/**
 * Owns where the raw output of a test run is kept, so that it can be graded again without running: in the
 * verdict when small, else as a content-addressed object.
 */
import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type Content, ContentSchema, INLINE_LIMIT_BYTES } from "@mortise/contracts";
import type { Objects } from "@mortise/kernel";

export class LogStore {
  readonly #objects: Objects;

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  /** Keeps the bytes; returns the reference a message carries. */
  async keep(bytes: Uint8Array): Promise<Content> {
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const size = BigInt(bytes.length);
    if (bytes.length <= INLINE_LIMIT_BYTES)
      return create(ContentSchema, { place: { case: "inline", value: bytes }, sha256, size });
    if (!(await this.#objects.has(sha256))) await this.#objects.put(sha256, bytes);
    return create(ContentSchema, { place: { case: "object", value: sha256 }, sha256, size });
  }
}
