/**
 * Owns HTTP as spoken to a remote runtime: the bearer token, no redirects, bounded answers, no plain HTTP over a network
 * unless allowed. What went wrong below the protocol is told from what the runtime said.
 */
import { readFileSync, statSync } from "node:fs";
import { MortiseError } from "@mortise/contracts";
import { ConnectionBroke } from "./agent.js";

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
const OTHERS_MAY_READ = 0o077;
/** Nothing was sent: there was no connection to send it on. */
const NEVER_CONNECTED: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);

export interface FetchOptions {
  /** For errors. */
  readonly field: string;
  readonly tokenFile: string | undefined;
  readonly maxAnswerBytes: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of the whole exchange, whatever a library passes on. */
  readonly signal: AbortSignal;
}

/** A `fetch` for one exchange that remembers what failed it, whatever a library makes of it. */
export interface Exchange {
  readonly fetch: typeof fetch;
  /** What below the protocol went wrong, if anything did. */
  fault(): Error | undefined;
}

/** @throws MortiseError MORTISE_CONFIG_INVALID: the field would send tokens in the clear */
export function assertPrivate(url: string, allowed: boolean, field: string): void {
  const { protocol, hostname, username } = new URL(url);
  if (username !== "")
    throw invalid(field, "holds credentials; they belong into the file that tokenFile names");
  if (protocol === "https:" || allowed || LOOPBACK.test(hostname)) return;
  throw invalid(field, `is ${url}: tokens would cross a network in the clear. Use https, or set plainHttp`);
}

/** The bearer token, read anew for each exchange: it may be rotated. @throws MORTISE_CONFIG_INVALID */
export function tokenIn(file: string, field: string): string {
  try {
    if ((statSync(file).mode & OTHERS_MAY_READ) !== 0)
      throw invalid(field, `${file} can be read by others than its owner; set its mode to 0600`);
    const token = readFileSync(file, "utf8").trim();
    if (/^[\x21-\x7e]+$/.test(token)) return token;
    throw invalid(field, `${file} holds no token`);
  } catch (error) {
    if (error instanceof MortiseError) throw error;
    throw invalid(field, (error as Error).message);
  }
}

export function exchange(options: FetchOptions): Exchange {
  const { field, tokenFile, maxAnswerBytes, headers: always, signal } = options;
  let fault: Error | undefined;
  const failed = (error: Error): never => {
    fault ??= error;
    throw error;
  };
  return {
    fault: () => fault,
    fetch: async (input, init) => {
      const headers = new Headers({ ...Object.fromEntries(new Headers(init?.headers)), ...always });
      if (tokenFile !== undefined)
        headers.set("authorization", `Bearer ${tokenIn(tokenFile, `${field}.tokenFile`)}`);
      let response: Response;
      try {
        response = await fetch(input, { ...init, headers, redirect: "error", signal });
      } catch (error) {
        return failed(broken(error));
      }
      if (response.status === 401 || response.status === 403)
        return failed(
          new MortiseError({
            code: "MORTISE_HARNESS_REMOTE_DENIED",
            message: `${response.url} answered ${response.status}.`,
          }),
        );
      if (response.body === null) return response;
      const body = response.body.pipeThrough(bounded(maxAnswerBytes, response.url, failed));
      const { status, statusText } = response;
      return new Response(watched(body, failed), { status, statusText, headers: response.headers });
    },
  };
}

function bounded(
  maxBytes: number,
  url: string,
  failed: (error: Error) => never,
): TransformStream<Uint8Array, Uint8Array> {
  let nBytes = 0;
  return new TransformStream({
    transform(chunk, controller) {
      nBytes += chunk.byteLength;
      if (nBytes > maxBytes)
        failed(
          new MortiseError({
            code: "MORTISE_HARNESS_REMOTE_ANSWER",
            message: `${url} answers more than ${maxBytes} bytes.`,
            fix: "Raise harness.<name>.remote.maxAnswerBytes of the site file if such changes are wanted.",
          }),
        );
      controller.enqueue(chunk);
    },
  });
}

/** The same bytes; a connection that breaks among them is a fault. */
function watched(
  body: ReadableStream<Uint8Array>,
  failed: (error: Error) => never,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let isWanted = true;
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader
        .read()
        .catch((error) => failed(error instanceof MortiseError ? error : broken(error)));
      // Who reads may have had enough meanwhile.
      if (!isWanted) return;
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => {
      isWanted = false;
      return reader.cancel(reason);
    },
  });
}

function broken(error: unknown): ConnectionBroke {
  const { message, cause } = error as Error & { cause?: { code?: string; message?: string } };
  const code = cause?.code ?? (error as { code?: string }).code ?? "";
  const said = [message, cause?.message].filter((text) => text !== undefined && text !== "").join(": ");
  return new ConnectionBroke(said, !NEVER_CONNECTED.has(code), error);
}

function invalid(field: string, problem: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `${field}: ${problem}.`,
    detail: { field },
  });
}
