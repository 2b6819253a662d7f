/**
 * Owns the HTTP connection to one vLLM server: JSON asked and answered, and server-sent events read as they
 * come. On Node's own client, whose waits are ours: a turn may sit in the server's queue for minutes. Reading
 * stops while a consumer works, so a slow consumer slows the socket. Knows no route.
 */
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { MortiseError } from "@mortise/contracts";
import { withoutCredentials } from "@mortise/kernel";
import { readEvents } from "./sse.js";

/** Control calls and probes answer at once or not at all; loading weights has a bound of its own. */
const CONTROL_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 30_000;
/** Of a server's explanation; it may quote what it was sent. */
const MAX_REASON_CHARACTERS = 200;
const MAX_ERROR_BODY_BYTES = 64 * 1024;

export interface ServerOptions {
  readonly url: string;
  /** Sent as a bearer when given. */
  readonly key: string | undefined;
  /** A stream that is silent for this long has failed. */
  readonly stallTimeoutMs: number;
}

export interface Answer {
  readonly status: number;
  /** The parsed body; undefined when it is not JSON. */
  readonly json: unknown;
}

interface Call {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: object | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Silence allowed, in milliseconds. */
  readonly timeoutMs: number;
}

export class VllmServer {
  readonly url: string;
  private readonly options: ServerOptions;
  private readonly base: URL;
  private readonly agent: HttpAgent | HttpsAgent;

  constructor(options: ServerOptions) {
    this.options = options;
    this.url = withoutCredentials(options.url);
    this.base = new URL(options.url.endsWith("/") ? options.url : `${options.url}/`);
    const settings = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS };
    this.agent = this.base.protocol === "https:" ? new HttpsAgent(settings) : new HttpAgent(settings);
  }

  get(path: string): Promise<Answer> {
    return this.ask({ method: "GET", path, timeoutMs: CONTROL_TIMEOUT_MS });
  }

  post(path: string, body: object = {}, timeoutMs = CONTROL_TIMEOUT_MS): Promise<Answer> {
    return this.ask({ method: "POST", path, body, timeoutMs });
  }

  /**
   * The data of each event of a streamed answer, in order, as JSON.
   * @throws MortiseError MORTISE_PROVIDER_ENGINE for any status but 200, silence or a lost connection;
   *   the signal's reason when it is aborted
   */
  async *events(
    path: string,
    body: object,
    options: { headers?: Record<string, string>; signal: AbortSignal },
  ): AsyncGenerator<unknown> {
    const timeoutMs = this.options.stallTimeoutMs;
    const response = await this.send({ method: "POST", path, body, timeoutMs, ...options });
    try {
      if (response.statusCode !== 200) throw this.refused(path, await answerOf(response));
      for await (const data of readEvents(response)) {
        // Read on to the end of the body, so that the connection can be used again.
        if (data !== "[DONE]") yield this.parse(path, data);
      }
    } catch (error) {
      throw this.failed(path, error, options.signal);
    } finally {
      response.destroy();
    }
  }

  /** What a server said that is not what was asked for. */
  refused(path: string, { status, json }: Answer): MortiseError {
    return this.failure(path, `status ${status}${reasonOf(json)}`);
  }

  failure(path: string, reason: string, cause?: unknown): MortiseError {
    return new MortiseError({
      code: "MORTISE_PROVIDER_ENGINE",
      message: `vLLM at ${this.url}, ${path}: ${reason}.`,
      ...(cause !== undefined && { cause }),
    });
  }

  close(): void {
    this.agent.destroy();
  }

  private async ask(call: Call): Promise<Answer> {
    const response = await this.send(call);
    try {
      return await answerOf(response);
    } catch (error) {
      throw this.failed(call.path, error, undefined);
    }
  }

  private async send(call: Call): Promise<IncomingMessage> {
    try {
      return await this.attempt(call);
    } catch (error) {
      // The server closed an idle connection just as it was taken up again: nothing was read, so ask anew.
      if (!(error instanceof StaleConnection)) throw this.failed(call.path, error, call.signal);
    }
    return this.attempt(call).catch((error: unknown) => {
      throw this.failed(call.path, error, call.signal);
    });
  }

  private attempt({ method, path, body, headers, signal, timeoutMs }: Call): Promise<IncomingMessage> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const { key } = this.options;
    const options: RequestOptions = {
      method,
      agent: this.agent,
      headers: {
        accept: "application/json, text/event-stream",
        ...(payload !== undefined && {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(payload),
        }),
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...headers,
      },
      ...(signal && { signal }),
      timeout: timeoutMs,
    };
    const send = this.base.protocol === "https:" ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      let answering: IncomingMessage | undefined;
      const request = send(new URL(path.replace(/^\//, ""), this.base), options, (response) => {
        answering = response;
        resolve(response);
      });
      request.on("timeout", () => (answering ?? request).destroy(new Error(`silent for ${timeoutMs} ms`)));
      request.on("error", (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && error.code === "ECONNRESET";
        reject(isStale ? new StaleConnection() : error);
      });
      request.end(payload);
    });
  }

  private parse(path: string, data: string): unknown {
    try {
      return JSON.parse(data) as unknown;
    } catch (cause) {
      throw this.failure(path, "an event is not JSON", cause);
    }
  }

  private failed(path: string, error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason;
    if (error instanceof MortiseError) return error;
    const { code, message } = error as NodeJS.ErrnoException;
    return this.failure(path, code ?? message, error);
  }
}

class StaleConnection extends Error {}

async function answerOf(response: IncomingMessage): Promise<Answer> {
  const status = response.statusCode ?? 0;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (status >= 400 && bytes > MAX_ERROR_BODY_BYTES) break;
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  try {
    return { status, json: text === "" ? undefined : (JSON.parse(text) as unknown) };
  } catch {
    return { status, json: undefined };
  }
}

function reasonOf(json: unknown): string {
  const body = (json ?? {}) as {
    error?: { message?: unknown } | string;
    message?: unknown;
    detail?: unknown;
  };
  const said =
    typeof body.error === "object" ? body.error?.message : (body.error ?? body.message ?? body.detail);
  return typeof said === "string" ? ` (${said.slice(0, MAX_REASON_CHARACTERS)})` : "";
}
