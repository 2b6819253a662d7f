/**
 * Owns reading a log file of any size; gzip is recognised by its first bytes. Does not know what a log says.
 */
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { createGunzip } from "node:zlib";
import { MortiseError } from "@mortise/contracts";

const CHUNK_BYTES = 1_048_576;
const GZIP = [0x1f, 0x8b] as const;

/**
 * Calls back with the log's bytes, piece by piece.
 * @throws MORTISE_OPERATOR_FILES when it cannot be read or its compression is broken
 */
export async function readLog(path: string, onBytes: (bytes: Uint8Array) => void): Promise<void> {
  const isCompressed = await isGzip(path);
  const file = createReadStream(path, { highWaterMark: CHUNK_BYTES });
  try {
    const bytes = isCompressed ? file.pipe(createGunzip({ chunkSize: CHUNK_BYTES })) : file;
    file.on("error", (error) => bytes.destroy(error));
    for await (const chunk of bytes) onBytes(chunk as Uint8Array);
  } catch (error) {
    if (!isCompressed) throw error;
    throw new MortiseError({
      code: "MORTISE_OPERATOR_FILES",
      message: `The gzip log ${path} is damaged: ${(error as Error).message}.`,
      fix: "Give the whole file, or the log uncompressed.",
      cause: error,
      detail: { field: "--log", path },
    });
  } finally {
    file.destroy();
  }
}

async function isGzip(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    if ((await file.stat()).isDirectory()) throw isDirectory(path);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(GZIP.length), 0, GZIP.length, 0);
    return bytesRead === GZIP.length && GZIP.every((byte, at) => buffer[at] === byte);
  } finally {
    await file.close();
  }
}

function isDirectory(path: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_FILES",
    message: `${path} is a directory.`,
    fix: "Name the file of the log in it.",
    detail: { field: "--log", path },
  });
}
