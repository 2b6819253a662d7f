/**
 * Owns reading zip archives member by member: wheels, eggs, jars. Does not search.
 */
import { readSync } from "node:fs";
import type { Readable } from "node:stream";
import yauzl from "yauzl";
import { decodedWhole, SMALL_BYTES } from "./content-kind.js";

export interface ZipMember {
  /** Byte string. */
  readonly name: string;
  readonly isEncrypted: boolean;
  /** Content of a small and sound member, else undefined. */
  whole(): Promise<Buffer | undefined>;
  /** Rejects when the member is damaged or its compression is unknown. */
  open(): Promise<Readable>;
}

const STORED = 0;
const DEFLATED = 8;

/** @param source an open file, which stays open, or the whole archive; rejects when it is no readable zip */
export async function* zipMembers(source: number | Buffer): AsyncGenerator<ZipMember> {
  const options = { lazyEntries: true, decodeStrings: false, autoClose: false } as const;
  const archive = await new Promise<yauzl.ZipFile>((resolve, reject) => {
    const done = (error: Error | null, found: yauzl.ZipFile) =>
      error === null ? resolve(found) : reject(error);
    if (typeof source === "number") yauzl.fromFd(source, options, done);
    else yauzl.fromBuffer(source, options, done);
  });
  for (let left = archive.entryCount; left > 0; left--) {
    const entry = await new Promise<yauzl.Entry>((resolve, reject) => {
      archive.once("entry", resolve);
      archive.once("error", reject);
      archive.once("end", () => reject(new Error("the directory of the archive is too short")));
      archive.readEntry();
    }).finally(() => archive.removeAllListeners());
    const bytes: unknown = entry.fileName;
    yield {
      name: Buffer.isBuffer(bytes) ? bytes.toString("latin1") : String(bytes),
      isEncrypted: (entry.generalPurposeBitFlag & 1) !== 0,
      whole: () => whole(archive, entry, source),
      open: () =>
        new Promise<Readable>((resolve, reject) => {
          archive.openReadStream(entry, (error, stream) =>
            error === null ? resolve(stream) : reject(error),
          );
        }),
    };
  }
}

async function whole(
  archive: yauzl.ZipFile,
  entry: yauzl.Entry,
  source: number | Buffer,
): Promise<Buffer | undefined> {
  const { compressionMethod: method, compressedSize, uncompressedSize } = entry;
  if (compressedSize > SMALL_BYTES || (method !== STORED && method !== DEFLATED)) return undefined;
  const start = await new Promise<number | undefined>((resolve) => {
    archive.readLocalFileHeader(entry, { minimal: true }, (error, header) =>
      resolve(error === null ? header.fileDataStart : undefined),
    );
  });
  if (start === undefined) return undefined;
  let packed: Buffer;
  if (Buffer.isBuffer(source)) packed = source.subarray(start, start + compressedSize);
  else {
    packed = Buffer.allocUnsafe(compressedSize);
    packed = packed.subarray(0, readSync(source, packed, 0, compressedSize, start));
  }
  const content = method === STORED ? packed : decodedWhole("deflate", packed);
  return content?.byteLength === uncompressedSize ? content : undefined;
}
