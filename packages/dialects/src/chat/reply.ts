/**
 * Owns writing OpenAI Chat Completions replies: chunks of a stream, and the whole object. Pure text in, text
 * out; does not know sockets or when a reply may end (C3).
 */
import type { ReplyEnd, ReplyPart } from "@mortise/capture";
import { FinishReason, type MortiseError } from "@mortise/contracts";
import { CallStarts } from "../call-starts.js";
import { CustomInput } from "../custom-input.js";
import type { ModelRequest, ReplyHead, ReplyTokens, ReplyWriter } from "../types.js";
import { streamError } from "./error.js";
import { choiceTokenFields, contextTokenFields } from "./tokens.js";
import { wholeMessage } from "./whole-message.js";

export class ChatWriter implements ReplyWriter {
  private readonly head: { id: string; created: number; model: string };
  private readonly request: ModelRequest;
  private readonly starts = new CallStarts();
  /** Of the call that is written, if its tool takes raw text. */
  private customInput: CustomInput | undefined;
  private hasCompleteCall = false;

  constructor(head: ReplyHead, request: ModelRequest) {
    const created = Math.floor(head.createdMs / 1000);
    this.head = { id: `chatcmpl-${head.turn}`, created, model: head.model };
    this.request = request;
  }

  opening(): string {
    return this.delta({ role: "assistant" });
  }

  parts(parts: readonly ReplyPart[]): string {
    return parts
      .flatMap((part) => this.starts.release(part))
      .map((part) => this.part(part))
      .join("");
  }

  keepAlive(): string {
    return this.delta({});
  }

  ending(end: ReplyEnd, tokens?: ReplyTokens): string {
    const { tokenFields = [], wantsUsage } = this.request;
    const finish_reason = finishName(end.finish, this.hasCompleteCall);
    const choice = { index: 0, delta: {}, finish_reason, ...choiceTokenFields(tokens, tokenFields) };
    const final = this.chunk([choice], contextTokenFields(tokens, tokenFields));
    return `${final}${wantsUsage ? this.chunk([], { usage: usageFields(end) }) : ""}data: [DONE]\n\n`;
  }

  failing(error: MortiseError): string {
    return `data: ${streamError(error)}\n\n`;
  }

  whole(parts: readonly ReplyPart[], end: ReplyEnd, tokens?: ReplyTokens): string {
    const { tokenFields = [], toolTargets } = this.request;
    const hasCompleteCall = parts.some((part) => part.kind === "call-end");
    const choice = {
      index: 0,
      message: wholeMessage(parts, toolTargets),
      finish_reason: finishName(end.finish, hasCompleteCall),
      logprobs: null,
      ...choiceTokenFields(tokens, tokenFields),
    };
    return JSON.stringify({
      ...this.head,
      object: "chat.completion",
      choices: [choice],
      usage: usageFields(end),
      ...contextTokenFields(tokens, tokenFields),
    });
  }

  private part(part: ReplyPart): string {
    switch (part.kind) {
      case "text":
        return part.text === "" ? "" : this.delta({ content: part.text });
      case "reasoning":
        return part.text === "" ? "" : this.delta({ reasoning_content: part.text });
      case "call-start": {
        const { isCustom } = this.request.toolTargets.get(part.name) ?? { isCustom: false };
        this.customInput = isCustom ? new CustomInput() : undefined;
        const target = isCustom
          ? { type: "custom", custom: { name: part.name, input: "" } }
          : { type: "function", function: { name: part.name, arguments: "" } };
        return this.callDelta(part.call, { id: part.id, ...target });
      }
      case "call-arguments":
        return this.customInput
          ? this.customDelta(part.call, this.customInput.push(part.text))
          : this.callDelta(part.call, { function: { arguments: part.text } });
      case "call-end":
        this.hasCompleteCall = true;
        return this.customInput ? this.customDelta(part.call, this.customInput.end()) : "";
    }
  }

  private customDelta(call: number, input: string): string {
    return input === "" ? "" : this.callDelta(call, { custom: { input } });
  }

  private callDelta(index: number, fields: object): string {
    return this.delta({ tool_calls: [{ index, ...fields }] });
  }

  private delta(delta: object): string {
    return this.chunk([{ index: 0, delta, finish_reason: null }], {});
  }

  private chunk(choices: readonly object[], fields: object): string {
    const chunk = { ...this.head, object: "chat.completion.chunk", choices, ...fields };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  }
}

/** A truncated reply is `length` even with complete calls in it; complete calls alone make it `tool_calls`. */
function finishName(finish: FinishReason, hasCompleteCall: boolean): string {
  if (finish !== FinishReason.STOP) return "length";
  return hasCompleteCall ? "tool_calls" : "stop";
}

function usageFields(end: ReplyEnd): object {
  return {
    prompt_tokens: end.promptTokens,
    completion_tokens: end.completionTokens,
    total_tokens: end.promptTokens + end.completionTokens,
    prompt_tokens_details: { cached_tokens: end.cachedTokens },
    completion_tokens_details: { reasoning_tokens: end.reasoningTokens },
  };
}
