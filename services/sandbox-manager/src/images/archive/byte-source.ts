/**
 * Owns reading bytes by counts, from whatever has them in order. Here: an asynchronous stream of chunks by byte counts. What is already buffered is given without
 * waiting; nothing is buffered beyond the chunk in hand and the bytes asked for.
 * Does not know what the bytes mean.
 */
export interface Bytes {
  /** Exactly `n` bytes, or fewer where they end. The result may share memory with what is read later. */
  take(n: number): Promise<Buffer>;
  /** Between 1 and `max` bytes, whatever is at hand, or undefined at the end. */
  some(max: number): Promise<Buffer | undefined>;
  /** Passes over `n` bytes. @returns how many there were */
  skip(n: number): Promise<number>;
}

export class ByteSource implements Bytes {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #current: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async take(n: number): Promise<Buffer> {
    const present = this.#current.byteLength - this.#at;
    if (present >= n) return this.#slice(n);
    const parts: Buffer[] = [];
    let missing = n;
    while (missing > 0) {
      const part = await this.some(missing);
      if (part === undefined) break;
      parts.push(part);
      missing -= part.byteLength;
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  async some(max: number): Promise<Buffer | undefined> {
    while (this.#at === this.#current.byteLength) {
      const { done, value } = await this.#chunks.next();
      if (done === true) return undefined;
      this.#current = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      this.#at = 0;
    }
    return this.#slice(Math.min(max, this.#current.byteLength - this.#at));
  }

  async skip(n: number): Promise<number> {
    let skipped = 0;
    while (skipped < n) {
      const chunk = await this.some(n - skipped);
      if (chunk === undefined) break;
      skipped += chunk.byteLength;
    }
    return skipped;
  }

  /** Reads to the end and forgets what it reads. */
  async drain(): Promise<void> {
    while ((await this.some(Number.MAX_SAFE_INTEGER)) !== undefined);
  }

  /** Tells the stream that nothing more will be read. */
  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  #slice(n: number): Buffer {
    const slice = this.#current.subarray(this.#at, this.#at + n);
    this.#at += n;
    return slice;
  }
}
