/**
 * Owns writing OpenAI Responses replies: the events of a stream, and the whole object. Pure text in, text out;
 * does not know sockets or when a reply may end (C3).
 *
 * A reply cut by a limit ends with `response.completed`, and the response in it says `incomplete`: Codex dies
 * of the event `response.incomplete` whatever the turn holds, and reads no status; the others read the status.
 */
import type { ReplyEnd, ReplyPart } from "@mortise/capture";
import { FinishReason, type MortiseError } from "@mortise/contracts";
import type { ModelRequest, ReplyHead, ReplyWriter } from "../types.js";
import { failure } from "./error.js";
import { EventStream } from "./events.js";
import { Output } from "./output.js";

type ResponseStatus = "in_progress" | "completed" | "incomplete" | "failed";

export class ResponsesWriter implements ReplyWriter {
  private readonly head: ReplyHead;
  private readonly toolChoice: unknown;
  private readonly events = new EventStream();
  private readonly output: Output;

  constructor(head: ReplyHead, request: ModelRequest) {
    this.head = head;
    this.toolChoice = toolChoiceField(request);
    this.output = new Output(head.turn, request.toolTargets, this.events);
  }

  opening(): string {
    this.events.emit("response.created", { response: this.response("in_progress") });
    return this.keepAlive();
  }

  parts(parts: readonly ReplyPart[]): string {
    for (const part of parts) this.output.add(part);
    return this.events.take();
  }

  keepAlive(): string {
    this.events.emit("response.in_progress", { response: this.response("in_progress") });
    return this.events.take();
  }

  ending(end: ReplyEnd): string {
    this.events.emit("response.completed", { response: this.ended(end) });
    return this.events.take();
  }

  failing(error: MortiseError): string {
    const { code, message } = failure(error);
    // Clients heed either of the two.
    const details = { code, message, param: null };
    this.events.emit("error", { ...details, error: { type: code, ...details } });
    const response = { ...this.response("failed"), error: { code, message } };
    this.events.emit("response.failed", { response });
    return this.events.take();
  }

  whole(parts: readonly ReplyPart[], end: ReplyEnd): string {
    for (const part of parts) this.output.add(part);
    return JSON.stringify(this.ended(end));
  }

  private ended(end: ReplyEnd): object {
    const status = end.finish === FinishReason.STOP ? "completed" : "incomplete";
    this.output.end(status);
    return {
      ...this.response(status),
      incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
      usage: usageFields(end),
    };
  }

  private response(status: ResponseStatus): object {
    const isEnd = status !== "in_progress";
    return {
      id: `resp_${this.head.turn}`,
      object: "response",
      created_at: Math.floor(this.head.createdMs / 1000),
      status,
      error: null,
      incomplete_details: null,
      instructions: null,
      metadata: {},
      model: this.head.model,
      output: isEnd ? this.output.items : [],
      parallel_tool_calls: true,
      previous_response_id: null,
      store: false,
      temperature: null,
      tool_choice: this.toolChoice,
      tools: [],
      top_p: null,
      usage: null,
    };
  }
}

function toolChoiceField({ toolChoice, toolTargets }: ModelRequest): unknown {
  if (toolChoice.mode !== "tool") return toolChoice.mode;
  const target = toolTargets.get(toolChoice.name);
  return { type: target?.isCustom ? "custom" : "function", name: target?.name ?? toolChoice.name };
}

function usageFields(end: ReplyEnd): object {
  const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = end;
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  };
}
