/**
 * Owns bounded capture of a command's output: the first and the last part are kept, the middle is counted.
 * Does not interpret it.
 */

export interface Output {
  /** Head and tail joined; equal to everything written unless `isTruncated`. */
  readonly bytes: Uint8Array;
  readonly totalBytes: number;
  readonly isTruncated: boolean;
}

export const NO_OUTPUT: Output = { bytes: new Uint8Array(0), totalBytes: 0, isTruncated: false };

/** Collects at most `limitBytes`; memory stays below twice the limit however much is written. */
export class OutputCollector {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #totalBytes = 0;

  constructor(limitBytes: number) {
    this.#headLimit = Math.ceil(limitBytes / 2);
    this.#tailLimit = Math.floor(limitBytes / 2);
  }

  add(chunk: Uint8Array): void {
    this.#totalBytes += chunk.byteLength;
    const room = this.#headLimit - this.#headBytes;
    const head = chunk.subarray(0, Math.max(0, room));
    if (head.byteLength > 0) {
      this.#head.push(Buffer.from(head));
      this.#headBytes += head.byteLength;
    }
    const rest = chunk.subarray(head.byteLength);
    if (rest.byteLength === 0 || this.#tailLimit === 0) return;
    this.#tail.push(Buffer.from(rest.subarray(-this.#tailLimit)));
    this.#tailBytes += this.#tail.at(-1)!.byteLength;
    // Compacting only at twice the limit keeps the cost per written byte constant.
    if (this.#tailBytes > 2 * this.#tailLimit) this.#compactTail();
  }

  /** What was kept so far. */
  end(): Output {
    this.#compactTail();
    const bytes = Buffer.concat([...this.#head, ...this.#tail]);
    return { bytes, totalBytes: this.#totalBytes, isTruncated: this.#totalBytes > bytes.byteLength };
  }

  #compactTail(): void {
    if (this.#tailBytes <= this.#tailLimit) return;
    const kept = Buffer.concat(this.#tail).subarray(-this.#tailLimit);
    this.#tail = [kept];
    this.#tailBytes = kept.byteLength;
  }
}
