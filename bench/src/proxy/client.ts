/**
 * Owns calling a server as a harness does, with as little work as possible: what the client computes is taken
 * from the servers it shares the machine with. Times are milliseconds from the moment the body was handed over.
 */
import { Agent, request } from "node:http";

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

export interface Served {
  /** First piece of the reply: text or call. */
  readonly firstTokenMs: number;
  /** Last piece before the end is told. */
  readonly lastTokenMs: number;
  /** The end of the stream. */
  readonly endMs: number;
  readonly text: string;
  readonly callId: string | undefined;
  /** Of the whole context, as the server counts; servers that do not render say 1. */
  readonly promptTokens: number;
}

const TOKEN = /"(?:content|arguments)":"[^"]/;

/** @throws Error when the reply is no complete stream */
export function callModel(target: { address: string; token: string }, body: string): Promise<Served> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`http://${target.address}/v1/chat/completions`, {
      method: "POST",
      agent,
      headers: {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        authorization: `Bearer ${target.token}`,
      },
    });
    outgoing.once("error", reject);
    outgoing.once("response", (incoming) => {
      let received = "";
      let firstTokenMs: number | undefined;
      let lastTokenMs = 0;
      incoming.setEncoding("utf8");
      incoming.on("data", (chunk: string) => {
        received += chunk;
        if (!TOKEN.test(chunk)) return;
        lastTokenMs = performance.now() - start;
        firstTokenMs ??= lastTokenMs;
      });
      incoming.once("error", reject);
      incoming.once("end", () => {
        const endMs = performance.now() - start;
        if (incoming.statusCode !== 200 || firstTokenMs === undefined || !received.includes("[DONE]"))
          reject(new Error(`${target.address}: ${incoming.statusCode} ${received.slice(0, 600)}`));
        else resolve({ firstTokenMs, lastTokenMs, endMs, ...contentOf(received) });
      });
    });
    const start = performance.now();
    outgoing.end(body);
  });
}

export function closeConnections(): void {
  agent.destroy();
}

function contentOf(received: string): Pick<Served, "text" | "callId" | "promptTokens"> {
  const promptTokens = Number(/"prompt_tokens":(\d+)/.exec(received)?.[1] ?? 0);
  const callId = /"id":"(call_[^"]+)"/.exec(received)?.[1];
  if (callId !== undefined) return { text: "", callId, promptTokens };
  const pieces = received.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g);
  return {
    text: [...pieces].map(([, piece]) => JSON.parse(`"${piece}"`) as string).join(""),
    callId,
    promptTokens,
  };
}
