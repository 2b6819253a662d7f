/**
 * Owns the answers that need no model: whether the front is there, which models it has, and the refusal of
 * what it does not speak. Does not authenticate.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { MortiseError } from "@mortise/contracts";

/** Telemetry is thrown away, so there is no reason to wait for more of it than this. */
const TELEMETRY_LIMIT_BYTES = 4 * 1024 * 1024;

export function answerJson(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}

/** Harnesses look whether anybody is there before they speak. */
export function answerAlive(response: ServerResponse): void {
  response.writeHead(200, { "content-length": 0 });
  response.end();
}

export function answerTelemetry(request: IncomingMessage, response: ServerResponse): void {
  discard(request, TELEMETRY_LIMIT_BYTES);
  answerJson(response, 200, {});
}

/** Codex asks with a WebSocket first, and after this status speaks HTTP at once; others cost it seconds. */
export function refuseUpgrade(response: ServerResponse): void {
  response.writeHead(426, { upgrade: "HTTP/1.1", "content-length": 0 });
  response.end();
}

/** The policy as the only model, in the list of the protocol that asks. */
export function answerModels(response: ServerResponse, name: string, isAnthropic: boolean): void {
  const model = modelCard(name, isAnthropic);
  answerJson(
    response,
    200,
    isAnthropic
      ? { data: [model], has_more: false, first_id: name, last_id: name }
      : { object: "list", data: [model] },
  );
}

/** Any name is a model: aliases are accepted everywhere, so that a harness may insist on one. */
export function answerModel(response: ServerResponse, asked: string, isAnthropic: boolean): void {
  answerJson(response, 200, modelCard(decoded(asked), isAnthropic));
}

/** Takes and drops what a client still sends, up to a limit: it reads the answer only when it has sent all. */
export function discard(request: IncomingMessage, limitBytes: number): void {
  let size = 0;
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > limitBytes) request.destroy();
  });
  request.resume();
}

function modelCard(name: string, isAnthropic: boolean): object {
  return isAnthropic
    ? { type: "model", id: name, display_name: name, created_at: new Date(0).toISOString() }
    : { id: name, object: "model", created: 0, owned_by: "mortise" };
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_PROVIDER_BAD_REQUEST",
      message: "The model's name is not percent-encoded text.",
      cause,
      detail: { field: "model" },
    });
  }
}
