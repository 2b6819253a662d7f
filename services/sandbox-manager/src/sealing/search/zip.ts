/**
 * Owns reading zip archives member by member: wheels, eggs, jars. Does not search.
 */
import type { Readable } from "node:stream";
import yauzl from "yauzl";

export interface ZipMember {
  /** Byte string. */
  readonly name: string;
  readonly isEncrypted: boolean;
  /** Rejects when the member is damaged or its compression is unknown. */
  open(): Promise<Readable>;
}

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
      open: () =>
        new Promise<Readable>((resolve, reject) => {
          archive.openReadStream(entry, (error, stream) =>
            error === null ? resolve(stream) : reject(error),
          );
        }),
    };
  }
}
