/**
 * Owns telling by first bytes what content is packed in, and undoing the compressions. Does not search.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { Readable } from "node:stream";
import {
  createGunzip,
  createInflate,
  createZstdDecompress,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
} from "node:zlib";
import { cutAtFrameEnds, isOneFrame, isZstd } from "../../images/archive/zstd-frames.js";

export type PackedKind = "gzip" | "zstd" | "zlib" | "xz" | "bzip2" | "tar" | "zip" | "pack" | "bundle";

/** As many bytes as `packedKind` looks at. */
export const HEAD_BYTES = 512;
const TAR_MAGIC_AT = 257;
const CHUNK_BYTES = 256 * 1024;
/** Formats without a decoder in Node, and the host's programs for them. */
const PROGRAMS = { xz: ["/usr/bin/xz", "/bin/xz"], bzip2: ["/usr/bin/bzip2", "/bin/bzip2"] } as const;

export function packedKind(head: Buffer): PackedKind | undefined {
  const begins = (...bytes: number[]) => bytes.every((byte, i) => head[i] === byte);
  if (begins(0x1f, 0x8b, 0x08)) return "gzip";
  if (isZstd(head)) return "zstd";
  if (begins(0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00)) return "xz";
  if (begins(0x42, 0x5a, 0x68) && head.toString("latin1", 4, 10) === "1AY&SY") return "bzip2";
  if (begins(0x50, 0x4b, 0x03, 0x04) || begins(0x50, 0x4b, 0x05, 0x06)) return "zip";
  if (begins(0x50, 0x41, 0x43, 0x4b, 0, 0, 0) && (head[7] === 2 || head[7] === 3)) return "pack";
  if (/^# v[23] git bundle\n/.test(head.toString("latin1", 0, 16))) return "bundle";
  if (head.toString("latin1", TAR_MAGIC_AT, TAR_MAGIC_AT + 5) === "ustar") return "tar";
  // RFC 1950: a deflate stream with a 32 KiB window, and a check over the first two bytes.
  if (head[0] === 0x78 && head.byteLength > 2 && head.readUInt16BE(0) % 31 === 0) return "zlib";
  return undefined;
}

/** Small contents are decoded in one call: a stream costs more than what it carries. */
export const SMALL_BYTES = 1024 * 1024;
const MAX_SMALL_OUTPUT_BYTES = 16 * 1024 * 1024;
const SMALL_DECODERS = {
  gzip: gunzipSync,
  zlib: inflateSync,
  zstd: zstdDecompressSync,
  deflate: inflateRawSync,
};

/**
 * The decompressed bytes, or undefined when they are to be had as a stream only: of large or damaged content, whose
 * beginning may still say something.
 */
export function decodedWhole(kind: PackedKind | "deflate", bytes: Buffer): Buffer | undefined {
  if (bytes.byteLength > SMALL_BYTES || !Object.hasOwn(SMALL_DECODERS, kind)) return undefined;
  try {
    // Of more frames only the first would be decoded.
    if (kind === "zstd" && !isOneFrame(bytes)) return undefined;
    const options = { maxOutputLength: MAX_SMALL_OUTPUT_BYTES };
    return SMALL_DECODERS[kind as keyof typeof SMALL_DECODERS](bytes, options);
  } catch {
    return undefined;
  }
}

export class NoDecoder extends Error {}

/** The decompressed bytes. Rejects at damage, and with `NoDecoder` when this host has no program for the format. */
export async function* decoded(
  kind: "gzip" | "zstd" | "zlib" | "xz" | "bzip2",
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const decoder = decoderOf(kind);
  const whole = kind === "zstd" ? cutAtFrameEnds(chunks) : chunks;
  const source = Readable.from(whole, { objectMode: false, highWaterMark: CHUNK_BYTES });
  source.once("error", (error) => decoder.output.destroy(error));
  decoder.input.on("error", (error) => decoder.output.destroy(error));
  source.pipe(decoder.input);
  try {
    for await (const chunk of decoder.output) yield chunk as Buffer;
    await decoder.end;
  } finally {
    source.destroy();
    decoder.stop();
  }
}

interface Decoder {
  readonly input: NodeJS.WritableStream;
  readonly output: Readable;
  /** Rejects when the end was not the format's own. */
  readonly end: Promise<void>;
  stop(): void;
}

function decoderOf(kind: "gzip" | "zstd" | "zlib" | "xz" | "bzip2"): Decoder {
  if (kind === "xz" || kind === "bzip2") return programOf(kind);
  const options = { chunkSize: CHUNK_BYTES };
  const stream =
    kind === "gzip"
      ? createGunzip(options)
      : kind === "zstd"
        ? createZstdDecompress(options)
        : createInflate(options);
  return { input: stream, output: stream, end: Promise.resolve(), stop: () => stream.destroy() };
}

function programOf(kind: "xz" | "bzip2"): Decoder {
  const program = PROGRAMS[kind].find((place) => existsSync(place));
  if (program === undefined) throw new NoDecoder(`there is no ${kind} on this host`);
  const child = spawn(program, ["-dc"], { env: {}, cwd: "/", stdio: ["pipe", "pipe", "ignore"] });
  const end = new Promise<void>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(`${kind} ended with ${code}`))));
  });
  // Whoever stops reading early does not ask how it ended.
  end.catch(() => {});
  return { input: child.stdin, output: child.stdout, end, stop: () => child.kill("SIGKILL") };
}
