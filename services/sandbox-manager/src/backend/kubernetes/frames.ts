/**
 * Owns the frames that pass between the manager and the helper in a pod: a kind (1 byte), a number (4, big-endian; a
 * connection's, else 0), a length (4), and so many bytes. pod-helper/frames.go is the other end. Does no I/O.
 */

export const KIND = {
  request: 1,
  data: 2,
  end: 3,
  kill: 4,
  credit: 5,
  output: 10,
  errors: 11,
  begun: 12,
  result: 13,
  alive: 14,
  opened: 15,
} as const;

const HEADER_BYTES = 9;
/** Of one frame's content, in both directions. */
export const MAX_FRAME_BYTES = 64 * 1024;
/** A result or a listing's line is longer than a piece of a stream, but not by much. */
const MAX_READ_BYTES = 16 * 1024 * 1024;

export interface Frame {
  readonly kind: number;
  readonly number: number;
  readonly bytes: Buffer;
}

/** Bytes of any length as frames of one kind; one empty frame for none. */
export function framesOf(kind: number, number: number, bytes: Uint8Array): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at === 0 || at < bytes.byteLength; at += MAX_FRAME_BYTES)
    frames.push(frameOf(kind, number, bytes.subarray(at, at + MAX_FRAME_BYTES)));
  return frames;
}

export function frameOf(kind: number, number: number, bytes: Uint8Array = new Uint8Array(0)): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + bytes.byteLength);
  frame.writeUInt8(kind, 0);
  frame.writeUInt32BE(number, 1);
  frame.writeUInt32BE(bytes.byteLength, 5);
  frame.set(bytes, HEADER_BYTES);
  return frame;
}

/** Puts frames together again from pieces cut anywhere. Throws for what no helper sends. */
export class FrameReader {
  #waiting: Buffer = Buffer.alloc(0);

  *read(piece: Uint8Array): Generator<Frame> {
    this.#waiting =
      this.#waiting.byteLength === 0 ? Buffer.from(piece) : Buffer.concat([this.#waiting, piece]);
    while (this.#waiting.byteLength >= HEADER_BYTES) {
      const size = this.#waiting.readUInt32BE(5);
      if (size > MAX_READ_BYTES) throw new Error("the pod's helper sent something else than frames");
      if (this.#waiting.byteLength < HEADER_BYTES + size) return;
      const bytes = this.#waiting.subarray(HEADER_BYTES, HEADER_BYTES + size);
      yield { kind: this.#waiting.readUInt8(0), number: this.#waiting.readUInt32BE(1), bytes };
      this.#waiting = this.#waiting.subarray(HEADER_BYTES + size);
    }
  }
}
