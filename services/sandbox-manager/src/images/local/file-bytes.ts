/**
 * Owns reading a file by counts where passing over bytes costs nothing: the headers of a large archive are read
 * without its contents.
 */
import type { FileHandle } from "node:fs/promises";
import type { Bytes } from "../archive/byte-source.js";

/** Headers come in blocks of 512 bytes, often with a long content between them. */
const MAX_READ_BYTES = 64 * 1024;

export class FileBytes implements Bytes {
  readonly #handle: FileHandle;
  /** Offset of the next byte. */
  position = 0;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async take(n: number): Promise<Buffer> {
    const buffer = Buffer.alloc(n);
    const { bytesRead } = await this.#handle.read(buffer, 0, n, this.position);
    this.position += bytesRead;
    return buffer.subarray(0, bytesRead);
  }

  async some(max: number): Promise<Buffer | undefined> {
    const bytes = await this.take(Math.min(max, MAX_READ_BYTES));
    return bytes.byteLength === 0 ? undefined : bytes;
  }

  async skip(n: number): Promise<number> {
    const { size } = await this.#handle.stat();
    const skipped = Math.min(n, size - this.position);
    this.position += skipped;
    return skipped;
  }
}
