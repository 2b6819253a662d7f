/**
 * Owns one layer's way from a blob to a directory an overlay can use: digest, decompression, diff id, limits and
 * members, all in one pass. It writes below `directory` only; on any error the caller removes that directory.
 * Does not store the result and does not fetch the blob.
 */
import { createHash } from "node:crypto";
import { MortiseError } from "@mortise/contracts";
import { isNoSpace, noSpace } from "../../no-space.js";
import { ByteSource } from "../archive/byte-source.js";
import { decompressed } from "../archive/decompress.js";
import { type TarEntry, TarReader } from "../archive/tar-reader.js";
import { layerRefused } from "../image-errors.js";
import { type DevicePolicy, EntryWriter, type RootAttributes, type Skipped } from "./entry-writer.js";
import { LayerTree } from "./layer-tree.js";
import { type LayerLimits, LayerMeter } from "./limits.js";
import { codeOf } from "./linux.js";
import { markOf, partsOf } from "./names.js";
import { Selection } from "./selection.js";

export interface UnpackOptions {
  /** An empty directory on the file system the layer is to stay on. */
  readonly directory: string;
  /** Roots of the layers below, topmost first. Asked only when an entry needs them. */
  readonly lower: () => Promise<readonly string[]>;
  /** `sha256:<hex>` of the uncompressed archive. */
  readonly diffId: string;
  /** `sha256:<hex>` and length of the blob, where a manifest states them. */
  readonly blob?: { readonly digest: string; readonly size: number } | undefined;
  readonly devices: DevicePolicy;
  readonly limits: LayerLimits;
  /** Only these paths, and what is below them. */
  readonly paths?: readonly string[] | undefined;
}

export interface UnpackedLayer {
  readonly compressedBytes: number;
  /** Uncompressed length of the archive. */
  readonly bytes: number;
  readonly entries: number;
  /** Whether the directory holds things taken from the layers below: it is then right over these only. */
  readonly needsLower: boolean;
  /** What the layer says of the image's root directory. */
  readonly root: RootAttributes | null;
  readonly skipped: readonly Skipped[];
}

/**
 * Rejects with MORTISE_SANDBOX_IMAGE_LAYER (hostile or damaged), _OVER_LIMIT (a bomb), _DIGEST (not the bytes
 * asked for), MORTISE_SANDBOX_NO_SPACE or _STORE (this host could not write).
 */
export async function unpackLayer(
  blob: AsyncIterable<Uint8Array>,
  options: UnpackOptions,
): Promise<UnpackedLayer> {
  const meter = new LayerMeter(options.limits);
  const blobHash = createHash("sha256");
  const diffHash = createHash("sha256");
  const raw = hashedBlob(blob, meter, blobHash, options.blob?.size);
  const counted = decompressed(keptOpen(raw));
  const source = new ByteSource(hashedArchive(counted, meter, diffHash));
  const tree = new LayerTree(options.directory, options.lower);
  const archive = new TarReader(source);
  const writer = new EntryWriter(tree, archive, options.devices);
  const selection = options.paths === undefined ? undefined : new Selection(options.paths);
  try {
    for (let entry = await archive.next(); entry !== undefined; entry = await archive.next()) {
      meter.entry();
      meter.file(entry.size);
      if (selection === undefined || isSelected(selection, entry))
        await attributed(writer, entry, options.directory);
    }
    await source.drain();
    tree.finish();
    // What a compressed stream has after its end still counts for the digest.
    for await (const _ of raw);
  } catch (error) {
    // Bytes damaged on the way are no hostile layer: another mirror may have the right ones.
    if (options.blob !== undefined && isRefusal(error)) {
      for await (const _ of raw);
      expectDigest("the digest", options.blob.digest, blobHash.digest("hex"));
    }
    throw attributedError(error, options.directory);
  } finally {
    await source.close().catch(() => {});
    await raw.return(undefined);
    tree.close();
  }
  if (options.blob !== undefined) expectDigest("the digest", options.blob.digest, blobHash.digest("hex"));
  expectDigest("the diff id", options.diffId, diffHash.digest("hex"));
  const { compressedBytes, bytes, entries } = meter;
  const { root, skipped } = writer;
  return { compressedBytes, bytes, entries, needsLower: tree.needsLower, root: root ?? null, skipped };
}

async function* hashedBlob(
  blob: AsyncIterable<Uint8Array>,
  meter: LayerMeter,
  hash: ReturnType<typeof createHash>,
  size: number | undefined,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of blob) {
    meter.compressedBytes += chunk.byteLength;
    if (size !== undefined && meter.compressedBytes > size)
      throw wrongBytes(`the blob is longer than ${size} bytes`);
    hash.update(chunk);
    yield chunk;
  }
  if (size !== undefined && meter.compressedBytes < size)
    throw wrongBytes(`the blob has ${meter.compressedBytes} of ${size} bytes`);
}

/** The same chunks, for a reader that may stop early without ending them for others. */
function keptOpen(chunks: AsyncGenerator<Uint8Array>): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => ({ next: () => chunks.next() }) };
}

function isRefusal(error: unknown): boolean {
  return error instanceof MortiseError && error.code === "MORTISE_SANDBOX_IMAGE_LAYER";
}

async function* hashedArchive(
  archive: AsyncIterable<Uint8Array>,
  meter: LayerMeter,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of archive) {
    meter.decompressed(chunk.byteLength);
    hash.update(chunk);
    yield chunk;
  }
}

function isSelected(selection: Selection, entry: TarEntry): boolean {
  const parts = partsOf(entry.name);
  const mark = parts.length === 0 ? undefined : markOf(parts.at(-1)!, entry.name);
  // A mark concerns the name it hides, or the directory it lies in.
  if (mark?.kind === "whiteout") return selection.has([...parts.slice(0, -1), mark.hidden], true);
  if (mark !== undefined) return selection.has(parts.slice(0, -1), true);
  const isIn = selection.has(parts, entry.kind === "directory");
  if (isIn && entry.kind === "hardlink" && !selection.has(partsOf(entry.target), false))
    throw layerRefused("it is selected and links to what is not; select that too", entry.name);
  return isIn;
}

async function attributed(writer: EntryWriter, entry: TarEntry, directory: string): Promise<void> {
  try {
    await writer.write(entry);
  } catch (error) {
    throw attributedError(error, directory, entry.name);
  }
}

/** Errors of this host, not of the layer. */
const HOST_CODES = new Set(["EIO", "EROFS", "EMFILE", "ENFILE", "ENOMEM", "EPERM", "EACCES", "ENOSYS"]);

function attributedError(error: unknown, directory: string, entry?: string): unknown {
  const code = codeOf(error);
  if (error instanceof MortiseError || code === undefined || !("syscall" in (error as object))) return error;
  if (isNoSpace(error)) return noSpace(directory, error as Error);
  if (entry !== undefined && !HOST_CODES.has(code)) return layerRefused((error as Error).message, entry);
  return new MortiseError({
    code: "MORTISE_SANDBOX_IMAGE_STORE",
    message: `${(error as Error).message}.`,
    cause: error,
  });
}

function expectDigest(what: string, expected: string, hex: string): void {
  if (expected !== `sha256:${hex}`) throw wrongBytes(`${what} is sha256:${hex}, expected ${expected}`);
}

function wrongBytes(message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_IMAGE_DIGEST", message: `${message}.` });
}
