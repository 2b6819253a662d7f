/**
 * Owns where the frames of a zstd stream end (RFC 8878 §3.1), without decompressing. Node's decoder stops at the end of
 * a frame that lies inside what it was given; layers of zstd:chunked and of parallel compressors are many frames.
 * Does not check what blocks hold: that is the decoder's.
 */
import { layerRefused } from "../image-errors.js";

const FRAME_MAGIC = 0xfd2f_b528;
/** Sixteen of them: the lowest four bits are the writer's. */
const SKIPPABLE_MAGIC = 0x184d_2a50;
const BLOCK_RAW_OR_COMPRESSED = [0, 2];
const BLOCK_RLE = 1;
/** By the two bits of the descriptor that say so. */
const DICTIONARY_ID_BYTES = [0, 1, 2, 4];
const CONTENT_SIZE_BYTES = [0, 2, 4, 8];
const CHECKSUM_BYTES = 4;

/** Whether bytes are the beginning of a zstd stream; four are enough. */
export function isZstd(head: Uint8Array): boolean {
  if (head.byteLength < 4) return false;
  const magic = Buffer.from(head.buffer, head.byteOffset, 4).readUInt32LE();
  return magic === FRAME_MAGIC || isSkippable(magic);
}

function isSkippable(magic: number): boolean {
  return (magic & 0xffff_fff0) >>> 0 === SKIPPABLE_MAGIC;
}

/** The same bytes, cut so that no chunk goes on beyond the end of a frame. Rejects where no frame begins. */
export async function* cutAtFrameEnds(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const walk = new FrameWalk();
  for await (const chunk of chunks)
    for (let at = 0; at < chunk.byteLength; ) {
      const end = walk.untilFrameEnd(chunk, at);
      yield chunk.subarray(at, end);
      at = end;
    }
}

/** Whether the first frame of a stream is all of it, or not even whole. */
export function isOneFrame(bytes: Uint8Array): boolean {
  return new FrameWalk().untilFrameEnd(bytes, 0) === bytes.byteLength;
}

type Part = "magic" | "skippable-size" | "descriptor" | "header" | "block-header" | "block" | "checksum";

class FrameWalk {
  /** What comes next, how much of it is missing, and what of it is here if it is to be read. */
  #part: Part = "magic";
  #missing = 4;
  readonly #bytes: number[] = [];
  #hasChecksum = false;
  #isLastBlock = false;

  /** The place in the chunk where the frame ends, or the chunk's end. */
  untilFrameEnd(chunk: Uint8Array, start: number): number {
    for (let at = start; at < chunk.byteLength; ) {
      const taken = Math.min(this.#missing, chunk.byteLength - at);
      if (this.#part !== "block" && this.#part !== "header" && this.#part !== "checksum")
        this.#bytes.push(...chunk.subarray(at, at + taken));
      at += taken;
      this.#missing -= taken;
      if (this.#missing === 0 && this.#isFrameOver()) return at;
    }
    return chunk.byteLength;
  }

  /** Goes on to the next part that is not empty; true when that is the next frame. */
  #isFrameOver(): boolean {
    const value = this.#bytes.reduceRight((sum, byte) => sum * 256 + byte, 0);
    this.#bytes.length = 0;
    switch (this.#part) {
      case "magic":
        if (value === FRAME_MAGIC) return this.#expect("descriptor", 1);
        if (isSkippable(value)) return this.#expect("skippable-size", 4);
        throw layerRefused("its compression is damaged (no frame begins where one should)");
      case "skippable-size":
        this.#hasChecksum = false;
        this.#isLastBlock = true;
        return value === 0 ? this.#blockOver() : this.#expect("block", value);
      case "descriptor":
        this.#hasChecksum = (value & 0x04) !== 0;
        return this.#expect("header", headerBytes(value));
      case "header":
        return this.#expect("block-header", 3);
      case "block-header": {
        this.#isLastBlock = (value & 1) !== 0;
        const size = blockBytes((value >> 1) & 3, value >> 3);
        return size === 0 ? this.#blockOver() : this.#expect("block", size);
      }
      case "block":
        return this.#blockOver();
      case "checksum":
        return this.#frameOver();
    }
  }

  #blockOver(): boolean {
    if (!this.#isLastBlock) return this.#expect("block-header", 3);
    return this.#hasChecksum ? this.#expect("checksum", CHECKSUM_BYTES) : this.#frameOver();
  }

  #frameOver(): boolean {
    this.#expect("magic", 4);
    return true;
  }

  #expect(part: Part, missing: number): boolean {
    this.#part = part;
    this.#missing = missing;
    return false;
  }
}

/** Of the header behind its descriptor: window, dictionary id, content size. */
function headerBytes(descriptor: number): number {
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const sizeFlag = descriptor >> 6;
  const contentSize = sizeFlag === 0 && isSingleSegment ? 1 : CONTENT_SIZE_BYTES[sizeFlag]!;
  return (isSingleSegment ? 0 : 1) + DICTIONARY_ID_BYTES[descriptor & 3]! + contentSize;
}

function blockBytes(type: number, size: number): number {
  if (type === BLOCK_RLE) return 1;
  if (BLOCK_RAW_OR_COMPRESSED.includes(type)) return size;
  throw layerRefused("its compression is damaged (a block of no known type)");
}
