/**
 * Owns speaking to a runtime by the contract of managed agent runtimes: `GET /ping`, `POST /invocations` with an event
 * stream as the answer. What there is no verb for is a body of its own (attach, cancel).
 */
import { createHash } from "node:crypto";
import { parseSseStream } from "@a2a-js/sdk";
import {
  INVOCATION_SCHEMA,
  type InvocationRequest,
  InvocationResult,
  InvocationStatus,
  MortiseError,
  type RemoteHarness,
  type StartInvocation,
} from "@mortise/contracts";
import { z } from "zod";
import { ConnectionBroke, type RemoteAgent, type RemoteHandle, type Watch } from "./agent.js";
import { type Exchange, exchange } from "./bounded-fetch.js";

/** Managed runtimes send every call with one such id to one machine. At least 33 characters. */
const SESSION_HEADER = "x-amzn-bedrock-agentcore-runtime-session-id";
/** It was heard and refused; nothing ran. */
const REFUSED_STATUS: ReadonlySet<number> = new Set([413, 429, 503]);
const SHOWN_CHARACTERS = 400;

const Ping = z.looseObject({ status: z.enum(["Healthy", "HealthyBusy"]) });
const Refusal = z.object({ error: z.object({ code: z.string().optional(), message: z.string() }) });

export class AgentCoreAgent implements RemoteAgent {
  readonly protocol = "agentcore";
  readonly url: string;
  readonly #settings: RemoteHarness["remote"];
  readonly #field: string;

  constructor(settings: RemoteHarness["remote"], field: string) {
    this.#settings = settings;
    this.#field = field;
    this.url = settings.url.replace(/\/+$/, "");
  }

  async look(signal: AbortSignal): Promise<string> {
    if (!this.#settings.ping) return "agentcore runtime, not asked";
    const http = this.#exchange(signal);
    const response = await http.fetch(this.#at("ping"));
    const parsed = Ping.safeParse(await response.json().catch(() => undefined));
    const fault = http.fault();
    if (fault !== undefined) throw fault;
    if (response.ok && parsed.success) return `agentcore runtime, ${parsed.data.status}`;
    throw new MortiseError({
      code: "MORTISE_HARNESS_REMOTE_REFUSED",
      message: `${this.url}/ping answered ${response.status} and not that it is healthy.`,
    });
  }

  start(request: StartInvocation, watch: Watch, signal: AbortSignal): Promise<InvocationResult> {
    return this.#result(request, watch, signal);
  }

  attach({ id }: RemoteHandle, watch: Watch, signal: AbortSignal): Promise<InvocationResult> {
    return this.#result({ schema: INVOCATION_SCHEMA, kind: "attach", id }, watch, signal);
  }

  async cancel({ id }: RemoteHandle, signal: AbortSignal): Promise<void> {
    const http = this.#exchange(signal);
    const response = await this.#post(http, { schema: INVOCATION_SCHEMA, kind: "cancel", id });
    await response.body?.cancel();
  }

  async #result(request: InvocationRequest, watch: Watch, signal: AbortSignal): Promise<InvocationResult> {
    const http = this.#exchange(signal);
    try {
      const response = await this.#post(http, request);
      if (!response.ok) throw await refusalOf(response, request);
      watch.accepted({ id: request.id });
      return await this.#read(response, watch);
    } catch (error) {
      throw http.fault() ?? error;
    }
  }

  async #read(response: Response, watch: Watch): Promise<InvocationResult> {
    if (!response.headers.get("content-type")?.startsWith("text/event-stream"))
      return resultOf(await response.text());
    for await (const { type, data } of parseSseStream(response, this.#settings.maxAnswerBytes)) {
      if (type === "result") return resultOf(data);
      const status = InvocationStatus.safeParse(jsonOf(data));
      if (type === "status" && status.success) watch.status(status.data);
    }
    throw new ConnectionBroke("the stream ended without a result", true);
  }

  #post(http: Exchange, request: InvocationRequest): Promise<Response> {
    return http.fetch(this.#at("invocations"), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "text/event-stream",
        [SESSION_HEADER]: `mortise-${createHash("sha256").update(request.id).digest("hex")}`,
      },
      body: JSON.stringify(request),
    });
  }

  /** A query of the base URL (a qualifier) stays behind the path. */
  #at(path: string): string {
    const url = new URL(this.#settings.url);
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/${path}`;
    return url.href;
  }

  #exchange(signal: AbortSignal): Exchange {
    const { tokenFile, maxAnswerBytes } = this.#settings;
    return exchange({ field: this.#field, tokenFile, maxAnswerBytes, signal });
  }
}

async function refusalOf(response: Response, { kind }: InvocationRequest): Promise<Error> {
  const text = await response.text().catch(() => "");
  const parsed = Refusal.safeParse(jsonOf(text));
  const said = parsed.success ? parsed.data.error.message : text.slice(0, SHOWN_CHARACTERS);
  const message = `${response.status}: ${said}`;
  if (response.status === 404 && kind !== "start")
    return new MortiseError({ code: "MORTISE_HARNESS_REMOTE_LOST", message });
  if (REFUSED_STATUS.has(response.status))
    return new MortiseError({ code: "MORTISE_HARNESS_REMOTE_REFUSED", message });
  // Whoever answers so may stand between us and a runtime that has begun.
  if (response.status >= 500) return new ConnectionBroke(message, true);
  return new MortiseError({ code: "MORTISE_HARNESS_REMOTE_ANSWER", message });
}

function resultOf(text: string): InvocationResult {
  const parsed = InvocationResult.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  throw new MortiseError({
    code: "MORTISE_HARNESS_REMOTE_ANSWER",
    message: `the result: ${z.prettifyError(parsed.error)}`,
  });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
