/** A bare HTTP client for tests: sees bytes and events as a harness does, and can hang up. */
import { type ClientRequest, type IncomingMessage, request } from "node:http";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

export interface Call {
  readonly request: ClientRequest;
  /** Resolves at the headers. */
  readonly opened: Promise<IncomingMessage>;
  /** Resolves at the end; rejects when the connection breaks. */
  readonly done: Promise<Answer>;
  /** Text received so far. */
  received(): string;
}

export function call(
  address: string,
  options: {
    path?: string;
    method?: string;
    token?: string;
    headers?: Record<string, string>;
    body?: unknown;
    raw?: string | Buffer;
  },
): Call {
  const body = options.raw ?? (options.body === undefined ? "" : JSON.stringify(options.body));
  const outgoing = request(`http://${address}${options.path ?? "/v1/chat/completions"}`, {
    method: options.method ?? "POST",
    agent: false,
    headers: {
      "content-type": "application/json",
      ...(options.token !== undefined && { authorization: `Bearer ${options.token}` }),
      ...options.headers,
    },
  });
  let text = "";
  const opened = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once("response", resolve);
    outgoing.once("error", reject);
  });
  const done = opened.then(
    (incoming) =>
      new Promise<Answer>((resolve, reject) => {
        incoming.setEncoding("utf8");
        incoming.on("data", (chunk: string) => {
          text += chunk;
        });
        incoming.once("error", reject);
        incoming.once("end", () =>
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text }),
        );
      }),
  );
  opened.catch(() => {});
  done.catch(() => {});
  outgoing.end(body);
  return { request: outgoing, opened, done, received: () => text };
}

/** The data of every server-sent event. */
export function events(text: string): string[] {
  return text.split("\n\n").flatMap((event) => (event.startsWith("data: ") ? [event.slice(6)] : []));
}

interface Chunk {
  choices: {
    delta: {
      content?: string;
      tool_calls?: { id?: string; function: { name?: string; arguments: string } }[];
    };
    finish_reason: string | null;
  }[];
  usage?: object;
  error?: { code: string };
}

/** A streamed reply put together as a client library does. */
export function joinStream(text: string) {
  const chunks = events(text)
    .filter((data) => data !== "[DONE]")
    .map((data) => JSON.parse(data) as Chunk);
  const deltas = chunks.flatMap((chunk) => chunk.choices ?? []);
  const calls = deltas.flatMap((choice) => choice.delta.tool_calls ?? []);
  return {
    content: deltas.map((choice) => choice.delta.content ?? "").join(""),
    callIds: calls.flatMap((one) => one.id ?? []),
    names: calls.flatMap((one) => one.function.name ?? []),
    arguments: calls.map((one) => one.function.arguments).join(""),
    finish: deltas.map((choice) => choice.finish_reason).find((reason) => reason !== null),
    usage: chunks.find((chunk) => chunk.usage)?.usage,
    error: chunks.find((chunk) => chunk.error)?.error,
    isDone: events(text).at(-1) === "[DONE]",
  };
}

/** Waits for something another process or socket brings about. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}
