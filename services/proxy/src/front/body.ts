/**
 * Owns reading a request body within a limit, whatever its content encoding, and its JSON. The limit holds for
 * the bytes sent and again for what they unpack to. Slow senders are ended by the server's timeouts.
 */
import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { MortiseError } from "@mortise/contracts";

/** Schemas of tools nest about ten levels; what walks a body recursively has this much stack for certain. */
const MAX_DEPTH = 200;

/** Unpacked at once by a decoder; the default of 16 KiB spends its time between the pieces. */
const CHUNK_BYTES = 256 * 1024;

type Decoder = (packed: Buffer, options: { maxOutputLength: number; chunkSize: number }) => Promise<Buffer>;

const DECODERS: Readonly<Record<string, Decoder>> = {
  identity: async (packed) => packed,
  gzip: promisify(zlib.gunzip),
  "x-gzip": promisify(zlib.gunzip),
  deflate: promisify(zlib.inflate),
  br: promisify(zlib.brotliDecompress),
  zstd: promisify(zlib.zstdDecompress),
};

/**
 * @throws MortiseError MORTISE_PROVIDER_TOO_LARGE, MORTISE_PROVIDER_BAD_REQUEST, or MORTISE_TRANSPORT_CANCELLED
 *   when the client left
 */
export async function readJsonBody(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  const packed = await readBytes(request, limitBytes);
  const bytes = await unpack(packed, request.headers["content-encoding"], limitBytes);
  const body = parse(bytes.toString("utf8"));
  if (isDeeperThan(MAX_DEPTH, body)) throw bad(`The body is nested deeper than ${MAX_DEPTH} levels.`);
  return body;
}

function readBytes(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > limitBytes) return Promise.reject(tooLarge(limitBytes));
  if (request.destroyed) return Promise.reject(clientLeft());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > limitBytes) fail(tooLarge(limitBytes));
    };
    // What still comes is taken and dropped (front/model-front.ts): a connection cut at this point reaches the
    // client as a reset, not as the refusal.
    const fail = (error: MortiseError) => {
      request.off("data", onData);
      chunks.length = 0;
      reject(error);
    };
    request.on("data", onData);
    const onGone = () => fail(clientLeft());
    request.once("end", () => {
      request.off("close", onGone);
      resolve(Buffer.concat(chunks));
    });
    request.once("close", onGone);
    request.once("error", onGone);
  });
}

async function unpack(packed: Buffer, encoding: string | undefined, limitBytes: number): Promise<Buffer> {
  const decoder = DECODERS[encoding?.trim().toLowerCase() ?? "identity"];
  if (!decoder) throw bad("The body's encoding is none of gzip, deflate, br and zstd.", "content-encoding");
  try {
    return await decoder(packed, { maxOutputLength: limitBytes, chunkSize: CHUNK_BYTES });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw tooLarge(limitBytes);
    throw bad(`The body is not what its encoding says.`, "content-encoding");
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw bad("The body is not JSON.");
  }
}

/** Plain loops: it visits every value of every body. */
function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (const inner of value) if (isDeeperThan(levels - 1, inner)) return true;
    return false;
  }
  for (const key in value) if (isDeeperThan(levels - 1, (value as Record<string, unknown>)[key])) return true;
  return false;
}

function bad(message: string, field?: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_BAD_REQUEST",
    message,
    ...(field !== undefined && { detail: { field } }),
  });
}

function tooLarge(limitBytes: number): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_TOO_LARGE",
    message: `The limit is ${limitBytes} bytes.`,
  });
}

function clientLeft(): MortiseError {
  return new MortiseError({ code: "MORTISE_TRANSPORT_CANCELLED", message: "The client left." });
}
