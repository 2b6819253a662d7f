/** A stand-in for a model endpoint on a real socket: answers are scripted, requests are kept. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface SeenRequest {
  readonly raw: string;
  readonly body: {
    messages: { role: string; content: string | null; tool_call_id?: string }[];
    tools: { function: { name: string } }[];
    stream: boolean;
    model: string;
  };
  readonly authorization: string | undefined;
  readonly url: string | undefined;
  readonly port: number | undefined;
}

export type Answer = (response: ServerResponse, request: SeenRequest) => void;

export async function startFakeModel(answers: Answer[]) {
  const seen: SeenRequest[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    let raw = "";
    request.on("data", (chunk) => {
      raw += chunk;
    });
    request.on("end", () => {
      const entry = {
        raw,
        body: JSON.parse(raw),
        authorization: request.headers.authorization,
        url: request.url,
        port: request.socket.remotePort,
      };
      seen.push(entry);
      const answer = answers[seen.length - 1];
      if (answer === undefined) response.writeHead(500).end();
      else answer(response, entry);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    seen,
    close: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
}

/** Streams a message in small pieces, tool-call arguments cut in two, as model servers do. */
export function streams(message: {
  content?: string;
  calls?: { name: string; arguments: string }[];
}): Answer {
  return (response) => {
    const deltas: object[] = [];
    for (const piece of (message.content ?? "").match(/.{1,3}/gs) ?? []) deltas.push({ content: piece });
    message.calls?.forEach((call, index) => {
      const half = Math.floor(call.arguments.length / 2);
      const start = { name: call.name, arguments: call.arguments.slice(0, half) };
      deltas.push({ tool_calls: [{ index, id: `call_${index}`, type: "function", function: start }] });
      deltas.push({ tool_calls: [{ index, function: { arguments: call.arguments.slice(half) } }] });
    });
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": keep-alive\n\n");
    for (const delta of deltas) response.write(`data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`);
    response.write(`data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: "stop" }] })}\n\n`);
    response.end("data: [DONE]\n\n");
  };
}

export function edits(old: string, replacement: string): Answer {
  return streams({ calls: [{ name: "edit", arguments: JSON.stringify({ old, new: replacement }) }] });
}

export function fails(status: number): Answer {
  return (response) => response.writeHead(status).end(`{"error":{"message":"status ${status}"}}`);
}
