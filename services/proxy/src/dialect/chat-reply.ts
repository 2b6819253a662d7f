/**
 * Owns writing OpenAI Chat Completions replies: chunks of a stream, and the whole object. Pure text in, text
 * out; does not know sockets (front/) or when a reply may end (C3, session/).
 */
import { FinishReason } from "@mortise/contracts";
import type { IdentifiedPart } from "../session/reply.js";

export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export interface ReplyHead {
  readonly id: string;
  readonly model: string;
  /** Seconds since the epoch. */
  readonly created: number;
}

/** The chunks of one streamed reply. Every method returns complete server-sent events. */
export class ChatStream {
  private readonly before: string;
  private calls = 0;

  constructor(head: ReplyHead) {
    const fields = { id: head.id, object: "chat.completion.chunk", created: head.created, model: head.model };
    this.before = `data: ${JSON.stringify(fields).slice(0, -1)},"choices":[`;
  }

  opening(): string {
    return this.chunk('{"role":"assistant"}', "null");
  }

  parts(parts: readonly IdentifiedPart[]): string {
    return parts.map((part) => this.part(part)).join("");
  }

  /** A real event without content: comments do not reset every client's idle timer. */
  keepAlive(): string {
    return this.chunk("{}", "null");
  }

  /** The final events. Only after the turn is on the stream (C3). */
  ending(finish: FinishReason, usage: Usage | undefined): string {
    const final = this.chunk("{}", JSON.stringify(finishName(finish, this.calls > 0)));
    const totals = usage ? `${this.before}],"usage":${JSON.stringify(usageFields(usage))}}\n\n` : "";
    return `${final}${totals}data: [DONE]\n\n`;
  }

  private part(part: IdentifiedPart): string {
    if (part.kind === "text") return this.chunk(`{"content":${JSON.stringify(part.text)}}`, "null");
    const index = this.calls++;
    const start = { index, id: part.id, type: "function", function: { name: part.call.name, arguments: "" } };
    const rest = { index, function: { arguments: part.call.arguments } };
    return [start, rest]
      .map((call) => this.chunk(`{"tool_calls":[${JSON.stringify(call)}]}`, "null"))
      .join("");
  }

  private chunk(delta: string, finish: string): string {
    return `${this.before}{"index":0,"delta":${delta},"finish_reason":${finish}}]}\n\n`;
  }
}

/** The body of a reply that is not streamed. */
export function chatCompletion(
  head: ReplyHead,
  parts: readonly IdentifiedPart[],
  finish: FinishReason,
  usage: Usage,
): string {
  const text = parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
  const calls = parts.flatMap((part) =>
    part.kind === "call" ? [{ id: part.id, type: "function", function: part.call }] : [],
  );
  const message = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return JSON.stringify({
    id: head.id,
    object: "chat.completion",
    created: head.created,
    model: head.model,
    choices: [{ index: 0, message, finish_reason: finishName(finish, calls.length > 0), logprobs: null }],
    usage: usageFields(usage),
  });
}

/** A truncated reply is `length` even with complete calls in it; calls alone make it `tool_calls`. */
function finishName(finish: FinishReason, hasCalls: boolean): string {
  if (finish !== FinishReason.STOP) return "length";
  return hasCalls ? "tool_calls" : "stop";
}

function usageFields({ promptTokens, completionTokens }: Usage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}
