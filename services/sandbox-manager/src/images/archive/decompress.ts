/**
 * Owns turning a blob into the tar it holds: gzip, zstd and plain, told apart by their first bytes, because
 * media types are not always true. Both byte counts are known while it runs, so that a bomb is noticed early.
 */
import { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { layerRefused } from "../image-errors.js";

/** Larger than Node's 16 KiB: fewer hand-overs between threads a megabyte. */
const CHUNK_BYTES = 256 * 1024;

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** The decompressed bytes. A damaged stream rejects with MORTISE_SANDBOX_IMAGE_LAYER. */
export async function* decompressed(blob: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const chunks = blob[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let length = 0;
  while (length < ZSTD_MAGIC.byteLength) {
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
  const source = Readable.from(whole, { objectMode: false, highWaterMark: CHUNK_BYTES });
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
  // Frames of zstd:chunked's table of contents are skippable: a decoder passes over them.
  if (head.subarray(0, 4).equals(ZSTD_MAGIC)) return createZstdDecompress({ chunkSize: CHUNK_BYTES });
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
