/**
 * Owns a model of limited capacity for the pool's benchmark: it answers every request after a fixed time and counts how
 * many it answers at once. Its replies are scripted: so many edits that change nothing, then an end. Stands for an
 * engine behind the proxy; what is measured is how well it is kept busy, not what it says.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";

export interface ModelOptions {
  /** Until a reply is complete. */
  readonly replyMs: number;
  /** Model calls of one trial; the last one has no tool call. */
  readonly turns: number;
}

export interface Served {
  readonly requests: number;
  /** Requests open at once, averaged over time. */
  readonly concurrency: number;
  readonly perMinute: number;
}

export class ScriptedModel {
  readonly #options: ModelOptions;
  readonly #server: http.Server;
  #requests = 0;
  #openMs = 0;
  #since = performance.now();

  private constructor(options: ModelOptions) {
    this.#options = options;
    this.#server = http.createServer((request, response) => void this.#answer(request, response));
  }

  static async start(options: ModelOptions): Promise<ScriptedModel> {
    const model = new ScriptedModel(options);
    await new Promise<void>((resolve) => model.#server.listen(0, "127.0.0.1", resolve));
    return model;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Begins counting anew. */
  reset(): void {
    this.#requests = 0;
    this.#openMs = 0;
    this.#since = performance.now();
  }

  served(): Served {
    const elapsedMs = performance.now() - this.#since;
    return {
      requests: this.#requests,
      concurrency: this.#openMs / elapsedMs,
      perMinute: (this.#requests * 60_000) / elapsedMs,
    };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const arrivedAt = performance.now();
    let text = "";
    for await (const chunk of request) text += chunk;
    const { messages } = JSON.parse(text) as { messages: { role: string }[] };
    const turn = messages.filter(({ role }) => role === "assistant").length + 1;
    await new Promise((resolve) => setTimeout(resolve, this.#options.replyMs));
    this.#requests++;
    this.#openMs += performance.now() - arrivedAt;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(reply(turn, turn >= this.#options.turns)));
  }
}

function reply(turn: number, isLast: boolean): object {
  const call = {
    id: `call-${turn}`,
    type: "function",
    function: { name: "edit", arguments: JSON.stringify({ old: "nothing like this", new: "" }) },
  };
  const message = isLast
    ? { role: "assistant", content: "done" }
    : { role: "assistant", content: null, tool_calls: [call] };
  return {
    id: `reply-${turn}`,
    object: "chat.completion",
    created: 0,
    model: "policy",
    choices: [{ index: 0, message, finish_reason: isLast ? "stop" : "tool_calls" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
}
