/**
 * Owns turning a blob into the tar it holds: gzip, zstd and plain, told apart by their first bytes, because
 * media types are not always true. Both byte counts are known while it runs, so that a bomb is noticed early.
 */
import { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { layerRefused } from "../image-errors.js";
import { cutAtFrameEnds, isZstd } from "./zstd-frames.js";

/** Larger than Node's 16 KiB: fewer hand-overs between threads a megabyte. */
const CHUNK_BYTES = 256 * 1024;

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
/** Enough to tell. */
const HEAD_BYTES = 4;

/** The decompressed bytes. A damaged stream rejects with MORTISE_SANDBOX_IMAGE_LAYER. */
export async function* decompressed(blob: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const chunks = blob[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let length = 0;
  while (length < HEAD_BYTES) {
    const { done, value } = await chunks.next();
    if (done === true) break;
    first.push(value);
    length += value.byteLength;
  }
  const head = Buffer.concat(first);
  const whole = prepended(head, chunks);
  const decoder = decoderFor(head);
  if (decoder === undefined) {
    yield* whole;
    return;
  }
  const source = Readable.from(isZstd(head) ? cutAtFrameEnds(whole) : whole, {
    objectMode: false,
    highWaterMark: CHUNK_BYTES,
  });
  let failure: unknown;
  // An error of the blob itself must not be taken for one of the compression.
  source.once("error", (error) => {
    failure = error;
    decoder.destroy(error);
  });
  source.pipe(decoder);
  try {
    for await (const chunk of decoder) yield chunk as Buffer;
  } catch (error) {
    if (failure !== undefined) throw failure;
    throw layerRefused(`its compression is damaged (${(error as Error).message})`);
  } finally {
    source.destroy();
    decoder.destroy();
  }
}

function decoderFor(head: Buffer) {
  if (head.subarray(0, 2).equals(GZIP_MAGIC)) return createGunzip({ chunkSize: CHUNK_BYTES });
  if (isZstd(head)) return createZstdDecompress({ chunkSize: CHUNK_BYTES });
  return undefined;
}

async function* prepended(
  head: Buffer,
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    if (head.byteLength > 0) yield head;
    for (;;) {
      const { done, value } = await rest.next();
      if (done === true) return;
      yield value;
    }
  } finally {
    await rest.return?.();
  }
}
