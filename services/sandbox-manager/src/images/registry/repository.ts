/**
 * Owns one repository at one endpoint: manifests whole, blobs as a stream that goes on where it broke off.
 * Does not choose endpoints, and does not check blobs: whoever reads a blob knows its digest.
 */
import { createHash } from "node:crypto";
import { MortiseError } from "@mortise/contracts";
import { MANIFEST_TYPES } from "../manifest.js";
import { isDigest } from "../reference.js";
import { Authorization, parseChallenge } from "./authorization.js";
import type { Credential } from "./credentials.js";
import { ask, bodyOf, type HttpOptions, Passing, pause, persist, place } from "./http.js";
import type { Endpoint } from "./rewrite.js";

/** Manifests and configurations are held in memory; registries allow 4 MiB. */
const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;

export interface Document {
  readonly bytes: Buffer;
  /** `sha256:<hex>` of the bytes. */
  readonly digest: string;
}

export class Repository {
  readonly endpoint: Endpoint;
  readonly #authorization: Authorization;
  readonly #options: HttpOptions;

  constructor(endpoint: Endpoint, credential: () => Credential | undefined, options: HttpOptions) {
    this.endpoint = endpoint;
    this.#authorization = new Authorization(endpoint, credential, options);
    this.#options = options;
  }

  /** @param target a tag, or a digest, which is then checked. */
  manifest(target: string, signal: AbortSignal | undefined): Promise<Document> {
    return this.#document(`manifests/${target}`, isDigest(target) ? target : undefined, signal);
  }

  /** A small blob, checked. */
  document(digest: string, signal: AbortSignal | undefined): Promise<Document> {
    return this.#document(`blobs/${digest}`, digest, signal);
  }

  /** Bytes of a blob, in order and each once, however often the connection breaks. */
  async *blob(digest: string, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const url = new URL(`blobs/${digest}`, this.endpoint.base);
    let received = 0;
    for (let failures = 0; ; ) {
      try {
        for await (const chunk of this.#from(url, received, signal)) {
          received += chunk.byteLength;
          failures = 0;
          yield chunk;
        }
        return;
      } catch (error) {
        if (!(error instanceof Passing)) throw error;
        failures += 1;
        await pause(error, failures, this.#options, signal);
      }
    }
  }

  async *#from(url: URL, offset: number, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    const headers: Record<string, string> = offset === 0 ? {} : { range: `bytes=${offset}-` };
    const response = await this.#get(url, headers, signal);
    if (response.status === 416) return;
    // A server that does not know ranges begins again, and so do we, without passing on what is known.
    let repeated = response.status === 206 ? 0 : offset;
    for await (const chunk of bodyOf(response, url, this.#options)) {
      const known = Math.min(repeated, chunk.byteLength);
      repeated -= known;
      if (known < chunk.byteLength) yield chunk.subarray(known);
    }
  }

  async #document(
    path: string,
    digest: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Document> {
    const url = new URL(path, this.endpoint.base);
    const bytes = await persist(
      async () => {
        const response = await this.#get(url, { accept: MANIFEST_TYPES.join(", ") }, signal);
        const chunks: Uint8Array[] = [];
        let length = 0;
        for await (const chunk of bodyOf(response, url, this.#options)) {
          length += chunk.byteLength;
          if (length > MAX_DOCUMENT_BYTES)
            throw this.#failed("IMAGE_OVER_LIMIT", `${place(url)} has over ${MAX_DOCUMENT_BYTES} bytes`);
          chunks.push(chunk);
        }
        return Buffer.concat(chunks);
      },
      this.#options,
      signal,
    );
    const found = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    if (digest !== undefined && digest !== found)
      throw this.#failed("IMAGE_DIGEST", `${place(url)} is ${found}`);
    return { bytes, digest: found };
  }

  /** A successful response. A challenge is answered once; a token may also have ended meanwhile. */
  async #get(url: URL, headers: Record<string, string>, signal: AbortSignal | undefined): Promise<Response> {
    for (let isAnswered = false; ; isAnswered = true) {
      const all = { ...headers, ...this.#authorization.headers() };
      const response = await ask({ url, headers: all, signal }, this.#options);
      if (response.ok || response.status === 416) return response;
      await response.body?.cancel();
      if (response.status === 401 && !isAnswered)
        await this.#authorization.answer(parseChallenge(response.headers.get("www-authenticate")), signal);
      else if (response.status === 401 || response.status === 403)
        throw this.#authorization.denied(`status ${response.status}`);
      else if (response.status === 404) throw this.#failed("IMAGE_UNKNOWN", `${place(url)} does not exist`);
      else throw this.#failed("IMAGE_REGISTRY", `${place(url)} answers ${response.status}`);
    }
  }

  #failed(what: "IMAGE_OVER_LIMIT" | "IMAGE_DIGEST" | "IMAGE_UNKNOWN" | "IMAGE_REGISTRY", message: string) {
    return new MortiseError({ code: `MORTISE_SANDBOX_${what}`, message: `${message}.` });
  }
}
