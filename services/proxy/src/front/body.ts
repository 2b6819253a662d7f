/**
 * Owns request bodies from their first byte until their call is planned: read within a limit, whatever their content
 * encoding, looked through, parsed, and bounded over all connections together. The limit of one holds for the bytes
 * sent and again for what they unpack to. Slow senders are ended by the server's timeouts.
 */
import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { MortiseError } from "@mortise/contracts";
import { bodyFault } from "../rendering/body-faults.js";
import type { RenderPool } from "../rendering/render-pool.js";
import type { BodyFault } from "../rendering/worker-messages.js";

/** Agents replay whole histories with tool output in them. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;
/** Of all bodies that are being read or rendered: some of the largest, or hundreds of long histories. */
const MAX_ALL_BYTES = 256 * 1024 * 1024;
/** Of those, one session's: two of the largest, so that no agent takes the others' place by sending slowly. */
const MAX_SESSION_BYTES = 64 * 1024 * 1024;
const RETRY_AFTER_MS = 2_000;
/**
 * Schemas of tools nest about ten levels; what walks a body recursively has this much stack for certain. The longest
 * histories have some ten thousand values.
 */
const LIMITS = { levels: 200, values: 200_000 };
/** Larger bodies are looked through by another thread first: a parser may make millions of values of one. */
const INLINE_BYTES = 512 * 1024;

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

export class Bodies {
  private readonly pool: RenderPool;
  private readonly maxAllBytes: number;
  private readonly maxSessionBytes: number;
  private readonly bySession = new Map<string, number>();
  private bytes = 0;

  get totalBytes(): number {
    return this.bytes;
  }

  constructor(
    pool: RenderPool,
    options: { readonly maxAllBytes?: number; readonly maxSessionBytes?: number } = {},
  ) {
    this.pool = pool;
    this.maxAllBytes = options.maxAllBytes ?? MAX_ALL_BYTES;
    this.maxSessionBytes = options.maxSessionBytes ?? MAX_SESSION_BYTES;
  }

  /**
   * Reads a body and counts it until `use` has settled.
   * @param session whose it is
   * @throws MortiseError MORTISE_PROVIDER_TOO_LARGE, MORTISE_PROVIDER_BAD_REQUEST, MORTISE_TRANSPORT_FULL when too
   *   much is being read already, or MORTISE_TRANSPORT_CANCELLED when the client left
   */
  async use<T>(request: IncomingMessage, session: string, use: (body: unknown) => Promise<T>): Promise<T> {
    let taken = 0;
    const take = (bytes: number) => {
      taken += bytes;
      if (this.count(session, bytes) > this.maxSessionBytes) throw tooMuchAtOnce(this.maxSessionBytes);
      if (this.bytes > this.maxAllBytes) throw tooMuchAtOnce(this.maxAllBytes);
    };
    try {
      const packed = await readBytes(request, take);
      const bytes = await unpack(packed, request.headers["content-encoding"]);
      if (bytes !== packed) take(bytes.length);
      return await use(await this.parse(bytes));
    } finally {
      this.count(session, -taken);
    }
  }

  /** What the session has then. */
  private count(session: string, bytes: number): number {
    this.bytes += bytes;
    const own = (this.bySession.get(session) ?? 0) + bytes;
    if (own === 0) this.bySession.delete(session);
    else this.bySession.set(session, own);
    return own;
  }

  private async parse(bytes: Buffer): Promise<unknown> {
    if (bytes.length > INLINE_BYTES) refuse(await this.pool.faultOf(bytes, LIMITS));
    const body = parse(bytes.toString("utf8"));
    if (bytes.length <= INLINE_BYTES) refuse(bodyFault(body, LIMITS));
    return body;
  }
}

function readBytes(request: IncomingMessage, take: (bytes: number) => void): Promise<Buffer> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > MAX_BODY_BYTES) return Promise.reject(tooLarge());
  if (request.destroyed) return Promise.reject(clientLeft());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      try {
        take(chunk.length);
        if (size > MAX_BODY_BYTES) fail(tooLarge());
      } catch (error) {
        fail(error);
      }
    };
    // What still comes is taken and dropped (front/model-front.ts): a connection cut at this point reaches the
    // client as a reset, not as the refusal.
    const fail = (error: unknown) => {
      request.off("data", onData);
      chunks.length = 0;
      reject(error);
    };
    request.on("data", onData);
    const onGone = () => fail(clientLeft());
    request.once("end", () => {
      request.off("close", onGone);
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    });
    request.once("close", onGone);
    request.once("error", onGone);
  });
}

async function unpack(packed: Buffer, encoding: string | undefined): Promise<Buffer> {
  const decoder = DECODERS[encoding?.trim().toLowerCase() ?? "identity"];
  if (!decoder) throw bad("The body's encoding is none of gzip, deflate, br and zstd.", "content-encoding");
  try {
    return await decoder(packed, { maxOutputLength: MAX_BODY_BYTES, chunkSize: CHUNK_BYTES });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw tooLarge();
    throw bad(`The body is not what its encoding says.`, "content-encoding");
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw bad(FAULTS["no-json"]);
  }
}

const FAULTS: Readonly<Record<BodyFault, string>> = {
  "no-json": "The body is not JSON.",
  "too-deep": `The body is nested deeper than ${LIMITS.levels} levels.`,
  "too-many-values": `The body has more than ${LIMITS.values} values.`,
};

function refuse(fault: BodyFault | undefined): void {
  if (fault) throw bad(FAULTS[fault]);
}

function bad(message: string, field?: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_BAD_REQUEST",
    message,
    ...(field !== undefined && { detail: { field } }),
  });
}

function tooLarge(): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_TOO_LARGE",
    message: `The limit is ${MAX_BODY_BYTES} bytes.`,
  });
}

function tooMuchAtOnce(limit: number): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_FULL",
    message: `Request bodies of more than ${limit} bytes together are being read.`,
    fix: "Wait for some of them.",
    retryAfterMs: RETRY_AFTER_MS,
  });
}

function clientLeft(): MortiseError {
  return new MortiseError({ code: "MORTISE_TRANSPORT_CANCELLED", message: "The client left." });
}
