/**
 * Owns tar bytes in memory: packing and unpacking lists of members. Deterministic: no times, no owners but the
 * one given. Does not touch the file system, so a hostile archive can do nothing here but be refused.
 */
import { extract, pack } from "tar-stream";

export interface TarMember {
  readonly name: string;
  readonly kind: "file" | "symlink" | "directory";
  readonly mode: number;
  readonly content?: Uint8Array;
  readonly target?: string;
}

/** Packs members in the order given; every member belongs to `uid`. */
export async function packTar(members: readonly TarMember[], uid = 0): Promise<Uint8Array> {
  const archive = pack();
  const chunks: Uint8Array[] = [];
  const done = new Promise<void>((resolve, reject) => {
    archive.on("data", (chunk) => chunks.push(chunk as Uint8Array));
    archive.on("end", resolve);
    archive.on("error", reject);
  });
  for (const member of members) {
    const header = { name: member.name, mode: member.mode, mtime: new Date(0), uid, gid: uid };
    if (member.kind === "symlink")
      archive.entry({ ...header, type: "symlink", linkname: member.target ?? "" });
    else if (member.kind === "directory") archive.entry({ ...header, type: "directory" });
    else archive.entry({ ...header, type: "file" }, Buffer.from(member.content ?? []));
  }
  archive.finalize();
  await done;
  return Buffer.concat(chunks);
}

/** A member as read: types other than file, symlink and directory are named, without content. */
export interface TarFound {
  readonly name: string;
  readonly type: string;
  readonly mode: number;
  readonly target: string;
  readonly content: Uint8Array;
}

/** Reads all members. Rejects when the archive is damaged or holds more than `maxBytes` of content. */
export function unpackTar(bytes: Uint8Array, maxBytes: number): Promise<TarFound[]> {
  return new Promise((resolve, reject) => {
    const found: TarFound[] = [];
    let total = 0;
    const parser = extract();
    parser.on("entry", (header, stream, next) => {
      const chunks: Uint8Array[] = [];
      stream.on("data", (data) => {
        const chunk = data as Uint8Array;
        total += chunk.byteLength;
        if (total > maxBytes) parser.destroy(new Error(`archive holds more than ${maxBytes} bytes`));
        else chunks.push(chunk);
      });
      stream.on("end", () => {
        found.push({
          name: header.name,
          type: header.type ?? "file",
          mode: header.mode ?? 0o644,
          target: header.linkname ?? "",
          content: Buffer.concat(chunks),
        });
        next();
      });
      stream.on("error", reject);
    });
    parser.on("finish", () => resolve(found));
    parser.on("error", reject);
    parser.end(Buffer.from(bytes));
  });
}
