/**
 * Owns writing OpenAI Chat Completions replies: chunks of a stream, and the whole object. Pure text in, text
 * out; does not know sockets or when a reply may end (C3).
 */
import type { ReplyEnd, ReplyPart } from "@mortise/capture";
import { FinishReason, type MortiseError } from "@mortise/contracts";
import type { ModelRequest, ReplyHead, ReplyTokens, ReplyWriter } from "../types.js";
import { errorBody } from "./error.js";

interface WholeCall {
  readonly id: string;
  readonly name: string;
  arguments: string;
}

export class ChatWriter implements ReplyWriter {
  private readonly head: { id: string; created: number; model: string };
  private readonly wantsUsage: boolean;
  private readonly before: string;
  private completeCalls = 0;

  constructor(head: ReplyHead, request: ModelRequest) {
    const created = Math.floor(head.createdMs / 1000);
    this.head = { id: `chatcmpl-${head.turn}`, created, model: head.model };
    this.wantsUsage = request.wantsUsage;
    const fields = { ...this.head, object: "chat.completion.chunk" };
    this.before = `data: ${JSON.stringify(fields).slice(0, -1)},"choices":[`;
  }

  opening(): string {
    return this.chunk({ role: "assistant" }, null);
  }

  parts(parts: readonly ReplyPart[]): string {
    return parts.map((part) => this.part(part)).join("");
  }

  keepAlive(): string {
    return this.chunk({}, null);
  }

  ending(end: ReplyEnd): string {
    const final = this.chunk({}, finishName(end.finish, this.completeCalls > 0));
    const totals = this.wantsUsage ? `${this.before}],"usage":${JSON.stringify(usageFields(end))}}\n\n` : "";
    return `${final}${totals}data: [DONE]\n\n`;
  }

  failing(error: MortiseError): string {
    return `data: ${errorBody(error)}\n\n`;
  }

  whole(parts: readonly ReplyPart[], end: ReplyEnd, tokens?: ReplyTokens): string {
    const text = join(parts, "text");
    const reasoning = join(parts, "reasoning");
    const calls = wholeCalls(parts);
    const message = {
      role: "assistant",
      content: text === "" && calls.length > 0 ? null : text,
      ...(reasoning !== "" && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls.map(functionCall) }),
    };
    const hasComplete = parts.some((part) => part.kind === "call-end");
    return JSON.stringify({
      id: this.head.id,
      object: "chat.completion",
      created: this.head.created,
      model: this.head.model,
      choices: [
        {
          index: 0,
          message,
          finish_reason: finishName(end.finish, hasComplete),
          logprobs: null,
          ...(tokens && { token_ids: [...tokens.ids] }),
        },
      ],
      usage: usageFields(end),
    });
  }

  private part(part: ReplyPart): string {
    switch (part.kind) {
      case "text":
        return this.chunk({ content: part.text }, null);
      case "reasoning":
        return this.chunk({ reasoning_content: part.text }, null);
      case "call-start": {
        const target = { name: part.name, arguments: "" };
        const start = { index: part.call, id: part.id, type: "function", function: target };
        return this.chunk({ tool_calls: [start] }, null);
      }
      case "call-arguments":
        return this.chunk({ tool_calls: [{ index: part.call, function: { arguments: part.text } }] }, null);
      case "call-end":
        this.completeCalls++;
        return "";
    }
  }

  private chunk(delta: object, finish: string | null): string {
    return `${this.before}${JSON.stringify({ index: 0, delta, finish_reason: finish })}]}\n\n`;
  }
}

function join(parts: readonly ReplyPart[], kind: "text" | "reasoning"): string {
  return parts.map((part) => (part.kind === kind ? part.text : "")).join("");
}

function wholeCalls(parts: readonly ReplyPart[]): WholeCall[] {
  const calls: WholeCall[] = [];
  for (const part of parts) {
    if (part.kind === "call-start") calls[part.call] = { id: part.id, name: part.name, arguments: "" };
    if (part.kind === "call-arguments") calls[part.call]!.arguments += part.text;
  }
  return calls;
}

function functionCall({ id, name, arguments: text }: WholeCall) {
  return { id, type: "function", function: { name, arguments: text } };
}

/** A truncated reply is `length` even with complete calls in it; complete calls alone make it `tool_calls`. */
function finishName(finish: FinishReason, hasCalls: boolean): string {
  if (finish !== FinishReason.STOP) return "length";
  return hasCalls ? "tool_calls" : "stop";
}

function usageFields({ promptTokens, completionTokens }: ReplyEnd) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}
