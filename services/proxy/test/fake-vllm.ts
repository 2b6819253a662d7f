/**
 * A fake of the HTTP face of a vLLM server, written from the shapes a real one sends: the two token routes,
 * streamed, and the control routes. It samples nothing; the test says what comes. What it proves is our side of
 * the contract only; test/parity runs a real server.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface FakeOptions {
  readonly hasGenerateRoute?: boolean;
  readonly hasControlRoutes?: boolean;
  readonly givesTokenIds?: boolean;
  readonly logProbabilities?: "processed" | "raw" | "none";
  readonly hasRouting?: boolean;
  /** What it says of its one tensor. */
  readonly checksum?: string;
}

/** The pieces of one streamed answer; a piece may wait, break off, or be anything the test wants. */
export interface FakeReply {
  readonly pieces: readonly {
    readonly ids: readonly number[];
    readonly logProbabilities?: readonly (number | null)[];
  }[];
  readonly finish?: string;
  /** Awaited after the first piece. */
  readonly hold?: Promise<void>;
  readonly breaksOff?: boolean;
  readonly versions?: readonly { version: string; start: number; end: number }[];
  readonly routedExperts?: string;
  /** What the server says the context's length was. */
  readonly contextLength?: number;
  readonly status?: number;
  readonly events?: readonly string[];
}

interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
  isAborted: boolean;
}

/** Log-probabilities of a made-up distribution over ids 3 to 7, for the probe. */
const LOGITS = [0, -0.5, -1.5, -2, -4];

export class FakeVllm {
  readonly asked: Asked[] = [];
  readonly controls: string[] = [];
  checksum: string;
  label = "default";
  /** Set to make a reload change nothing. */
  keepsWeights = false;
  /** Set to make control calls of this path fail. */
  failing: string | undefined;
  private readonly options: Required<FakeOptions>;
  private readonly replies: FakeReply[] = [];
  private readonly server: Server;

  private constructor(options: FakeOptions) {
    this.options = {
      hasGenerateRoute: true,
      hasControlRoutes: true,
      givesTokenIds: true,
      logProbabilities: "processed",
      hasRouting: false,
      checksum: "0",
      ...options,
    };
    this.checksum = this.options.checksum;
    this.server = createServer((request, response) => void this.serve(request, response));
  }

  static async start(options: FakeOptions = {}): Promise<FakeVllm> {
    const fake = new FakeVllm(options);
    await new Promise<void>((resolve) => fake.server.listen(0, "127.0.0.1", resolve));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  play(...replies: FakeReply[]): void {
    this.replies.push(...replies);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url!.slice(1);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
    const json = (status: number, value: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (path === "v1/models") return void json(200, { data: [{ id: "policy", max_model_len: 128 }] });
    if (path === "health") return void json(200, {});
    if (path === "version") return void json(200, { version: "fake" });
    const isGenerate = path === "inference/v1/generate" && this.options.hasGenerateRoute;
    if (isGenerate && body.token_ids === undefined)
      return void json(400, { error: { message: "token_ids: Field required" } });
    if (/[@/\\]|.{129}/.test(String(body.cache_salt ?? "")))
      return void json(400, { error: { message: "cache_salt has characters it must not have" } });
    if (isGenerate || path === "v1/completions")
      return this.answer({ path, headers: request.headers, body, isAborted: false }, response);
    if (!this.options.hasControlRoutes || !this.control(path, body, json)) json(404, { detail: "Not Found" });
  }

  private control(
    path: string,
    body: Record<string, unknown>,
    json: (status: number, value: unknown) => void,
  ): boolean {
    const [route] = path.split("?");
    if (route === "is_paused") json(200, { is_paused: false });
    else if (route === "weight_info") json(200, { weight_version: this.label });
    else if (
      ["pause", "resume", "collective_rpc", "update_weight_version", "weight_checker"].includes(route!)
    ) {
      this.controls.push(path);
      if (this.failing === route) {
        json(500, { error: { message: `${route} failed` } });
        return true;
      }
      if (route === "collective_rpc" && !this.keepsWeights) this.checksum = JSON.stringify(body.kwargs);
      if (route === "update_weight_version") this.label = body.new_version as string;
      json(200, route === "weight_checker" ? { checksums: { w: this.checksum } } : { status: "ok" });
    } else return false;
    return true;
  }

  private async answer(asked: Asked, response: ServerResponse): Promise<void> {
    const isProbe = asked.headers["x-session-id"] === undefined;
    if (!isProbe) this.asked.push(asked);
    response.on("close", () => {
      asked.isAborted = !response.writableEnded;
    });
    const reply = isProbe ? this.probeReply(asked) : this.replies.shift()!;
    if (reply.status) {
      response.writeHead(reply.status).end(JSON.stringify({ error: { message: "out of order" } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of reply.events ?? []) response.write(`data: ${event}\n\n`);
    for (const [at, piece] of reply.pieces.entries()) {
      const isLast = at === reply.pieces.length - 1;
      response.write(this.event(asked, piece, { isFirst: at === 0, isLast, reply }));
      if (at === 0) await reply.hold;
      if (response.destroyed) return;
    }
    if (reply.breaksOff) return void response.socket!.destroySoon();
    const usage = { prompt_tokens: reply.contextLength ?? contextOf(asked).length };
    response.write(`data: ${JSON.stringify({ choices: [], usage })}\n\n`);
    response.end("data: [DONE]\n\n");
  }

  private event(
    asked: Asked,
    { ids, logProbabilities }: FakeReply["pieces"][number],
    { isFirst, isLast, reply }: { isFirst: boolean; isLast: boolean; reply: FakeReply },
  ): string {
    const finish_reason = isLast && !reply.breaksOff ? (reply.finish ?? "stop") : null;
    const { givesTokenIds, logProbabilities: mode } = this.options;
    const values = mode === "none" ? undefined : ids.map((_, at) => logProbabilities?.[at] ?? -0.5);
    const missing = logProbabilities?.map((value) => (value === null ? -9999 : value));
    const shared = { ...(givesTokenIds && { token_ids: ids }), finish_reason };
    const context = isFirst ? { prompt_token_ids: contextOf(asked) } : {};
    if (asked.path === "v1/completions") {
      const temperature = asked.body.temperature as number;
      const logprobs = values && {
        token_logprobs: missing ?? values,
        top_logprobs: ids.map(() =>
          Object.fromEntries(this.top(temperature).map(([id, v]) => [`token_id:${id}`, v])),
        ),
      };
      const choice = { ...shared, ...(givesTokenIds && context), text: "?", logprobs };
      return `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
    }
    const sampling = asked.body.sampling_params as { temperature: number };
    const top_logprobs = this.top(sampling.temperature).map(([token_id, logprob]) => ({ token_id, logprob }));
    const content = ids.map((token_id, at) => ({
      token_id,
      logprob: (missing ?? values)?.[at],
      top_logprobs,
    }));
    const choice = {
      ...shared,
      logprobs: values && { content },
      routed_experts: isLast ? (reply.routedExperts ?? null) : null,
      weight_versions: isLast
        ? (reply.versions ?? [{ version: this.label, start: 0, end: countIds(reply) }])
        : null,
    };
    return `data: ${JSON.stringify({ choices: [choice], ...(asked.body.return_token_ids === true && context) })}\n\n`;
  }

  private top(temperature: number): [id: number, logp: number][] {
    const divisor = this.options.logProbabilities === "processed" ? temperature : 1;
    const scaled = LOGITS.map((logit) => logit / divisor);
    const norm = Math.log(scaled.reduce((sum, value) => sum + Math.exp(value), 0));
    return scaled.map((value, at) => [at + 3, value - norm]);
  }

  private probeReply(_asked: Asked): FakeReply {
    const routing = this.options.hasRouting
      ? { routedExperts: npy([3, 1, 2], "|u1", new Uint8Array(6)) }
      : {};
    return { pieces: [{ ids: [3] }], finish: "length", ...routing };
  }
}

function countIds(reply: FakeReply): number {
  return reply.pieces.reduce((sum, piece) => sum + piece.ids.length, 0);
}

function contextOf({ body }: Asked): number[] {
  return (body.token_ids ?? body.prompt) as number[];
}

/** The base64 of a .npy file, as numpy writes version 1. */
export function npy(shape: readonly number[], descr: string, bytes: Uint8Array): string {
  const header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.join(", ")}), }`;
  const padded = `${header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11)}\n`;
  const length = Buffer.alloc(2);
  length.writeUInt16LE(padded.length);
  return Buffer.concat([
    Buffer.from("\x93NUMPY\x01\x00", "latin1"),
    length,
    Buffer.from(padded),
    bytes,
  ]).toString("base64");
}
