/**
 * Owns writing Anthropic Messages replies: the events of a stream, and the whole message. Pure text in, text
 * out; does not know sockets or when a reply may end (C3).
 */
import type { ReplyEnd, ReplyPart } from "@mortise/capture";
import { FinishReason, type MortiseError } from "@mortise/contracts";
import { isObject } from "../fields.js";
import type { ReplyHead, ReplyWriter } from "../types.js";
import { type Block, type BlockStep, Blocks } from "./blocks.js";
import { errorObject } from "./error.js";

const DELTA_FIELDS = {
  reasoning: { type: "thinking_delta", field: "thinking" },
  text: { type: "text_delta", field: "text" },
  call: { type: "input_json_delta", field: "partial_json" },
} as const;

const PING = event("ping", {});

export class MessagesWriter implements ReplyWriter {
  private readonly head: ReplyHead;
  private readonly blocks = new Blocks();

  constructor(head: ReplyHead) {
    this.head = head;
  }

  /** How much of the prompt was kept from an earlier turn is told at the end; here all of it is input. */
  opening(promptTokens: number): string {
    const usage = usageFields({ promptTokens, cachedTokens: 0, completionTokens: 0 });
    const message = { ...this.envelope(), content: [], stop_reason: null, stop_sequence: null, usage };
    return event("message_start", { message }) + PING;
  }

  parts(parts: readonly ReplyPart[]): string {
    return this.events(parts.flatMap((part) => this.blocks.push(part)));
  }

  keepAlive(): string {
    return PING;
  }

  ending(end: ReplyEnd): string {
    const rest = this.events(this.blocks.end());
    const final = { delta: stopFields(end, this.blocks.completeCalls), usage: usageFields(end) };
    return rest + event("message_delta", final) + event("message_stop", {});
  }

  /**
   * The reply is not finished neatly, whatever was sent of it: a clean end would show a turn that is not on the
   * stream (C3). Clients that already hold a complete block act on it all the same.
   */
  failing(error: MortiseError): string {
    return event("error", { error: errorObject(error) });
  }

  /** Calls are spliced in as text: parsing them would change numbers, spaces and escapes. */
  whole(parts: readonly ReplyPart[], end: ReplyEnd): string {
    const blocks = new Blocks();
    const steps = [...parts.flatMap((part) => blocks.push(part)), ...blocks.end()];
    const content = collect(steps).map((block) => this.wholeBlock(block));
    const before = JSON.stringify(this.envelope()).slice(0, -1);
    const after = JSON.stringify({ ...stopFields(end, blocks.completeCalls), usage: usageFields(end) });
    return `${before},"content":[${content.join(",")}],${after.slice(1)}`;
  }

  private events(steps: readonly BlockStep[]): string {
    return steps.map((step) => this.blockEvent(step)).join("");
  }

  private blockEvent(step: BlockStep): string {
    const { index } = step;
    switch (step.step) {
      case "start":
        return event("content_block_start", { index, content_block: emptyBlock(step.block) });
      case "delta": {
        const { type, field } = DELTA_FIELDS[step.kind];
        return event("content_block_delta", { index, delta: { type, [field]: step.text } });
      }
      case "stop": {
        const delta = { type: "signature_delta", signature: this.signature(index) };
        const signed = step.kind === "reasoning" ? event("content_block_delta", { index, delta }) : "";
        return signed + event("content_block_stop", { index });
      }
    }
  }

  private wholeBlock({ block, index, text }: WholeBlock): string {
    if (block.kind === "text") return JSON.stringify({ type: "text", text });
    if (block.kind === "reasoning")
      return JSON.stringify({ type: "thinking", thinking: text, signature: this.signature(index) });
    const named = JSON.stringify(emptyBlock(block));
    return named.replace(/\{\}\}$/, () => `${inputObject(text)}}`);
  }

  private envelope() {
    return { id: `msg_${this.head.turn}`, type: "message", role: "assistant", model: this.head.model };
  }

  /** Clients refuse thinking without a signature. Ours names the place it came from and proves nothing. */
  private signature(index: number): string {
    return `${this.head.turn}-${index}`;
  }
}

interface WholeBlock {
  readonly block: Block;
  readonly index: number;
  text: string;
}

function collect(steps: readonly BlockStep[]): WholeBlock[] {
  const whole: WholeBlock[] = [];
  for (const step of steps) {
    if (step.step === "start") whole.push({ block: step.block, index: step.index, text: "" });
    if (step.step === "delta") whole[step.index]!.text += step.text;
  }
  return whole;
}

function emptyBlock(block: Block): object {
  if (block.kind === "call") return { type: "tool_use", id: block.id, name: block.name, input: {} };
  if (block.kind === "text") return { type: "text", text: "" };
  return { type: "thinking", thinking: "", signature: "" };
}

/** JSON of a call's input. Text that is no object is wrapped as Claude Code wraps it; the reader knows that. */
function inputObject(text: string): string {
  if (text.trim() === "") return "{}";
  try {
    if (isObject(JSON.parse(text))) return text;
  } catch {
    return unparsedInput(text);
  }
  return unparsedInput(text);
}

function unparsedInput(raw: string): string {
  return JSON.stringify({ __unparsedToolInput: { raw, len: raw.length } });
}

/** A truncated reply is `max_tokens` even with complete calls in it; complete calls alone make it `tool_use`. */
function stopFields({ finish, stopSequence }: ReplyEnd, completeCalls: number) {
  if (finish !== FinishReason.STOP) return { stop_reason: "max_tokens", stop_sequence: null };
  if (completeCalls > 0) return { stop_reason: "tool_use", stop_sequence: null };
  if (stopSequence !== undefined) return { stop_reason: "stop_sequence", stop_sequence: stopSequence };
  return { stop_reason: "end_turn", stop_sequence: null };
}

/**
 * The fields of the prompt add up to its true length, which is what harnesses compact by. At least one token
 * is always plain input: Claude Code reads a 0 at the end as "see the beginning".
 */
function usageFields(counts: Pick<ReplyEnd, "promptTokens" | "cachedTokens" | "completionTokens">) {
  const cached = Math.max(0, Math.min(counts.cachedTokens, counts.promptTokens - 1));
  return {
    input_tokens: counts.promptTokens - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: counts.completionTokens,
  };
}

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
