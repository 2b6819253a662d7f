/**
 * Owns reading captured ids as text: a context as messages, a turn's sampled ids as reply and calls. With the
 * checkpoint's own tokenizer, template and call syntax, as the proxy read them. Does not know trials.
 */
import { type SampledPart, type ToolSchema, unpackIds } from "@mortise/capture";
import type { SampledToolCall, Turn } from "@mortise/contracts";
import { openCheckpointText, type Tokenizer } from "@mortise/policy";
import {
  Renderer,
  type RenderingPolicy,
  ReplyParser,
  type ToolFormat,
  toolFormatOf,
} from "@mortise/rendering";
import { type ContextMessage, ContextReader } from "./context-messages.js";

export interface ReplyCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly isCut: boolean;
}

export interface ReadReply {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ReplyCall[];
}

/** As many values as a call without names of its own may have (see the positional syntax). */
const MAX_POSITIONS = 16;

export class PolicyText {
  private readonly tokenizer: Tokenizer;
  private readonly renderer: Renderer;
  private readonly contexts: ContextReader;
  private readonly format: ToolFormat | undefined;
  private readonly stopIds: ReadonlySet<number>;

  private constructor(parts: Awaited<ReturnType<typeof openCheckpointText>>, policy: RenderingPolicy) {
    const { tokenizer, chatTemplate, eosIds, tokenizerFiles } = parts;
    this.tokenizer = tokenizer;
    this.stopIds = eosIds;
    this.renderer = new Renderer({ chatTemplate, tokenizer, eosIds, policy });
    this.contexts = new ContextReader(this.renderer, tokenizer);
    const { tokenizerConfigJson } = tokenizerFiles;
    this.format = toolFormatOf({ tokenizerConfigJson, tokenizer, renderer: this.renderer, stopIds: eosIds });
  }

  /** @throws MortiseError naming the file of the checkpoint and the fix */
  static async open(checkpoint: string, policy: RenderingPolicy = {}): Promise<PolicyText> {
    return new PolicyText(await openCheckpointText(checkpoint), policy);
  }

  text(ids: Iterable<number>): string {
    return this.tokenizer.decode(ids);
  }

  /** What a turn adds to its parent, and what it sampled. */
  textOfTurn({ suffixIds, sampledIds }: Turn): string {
    return this.tokenizer.decode([...unpackIds(suffixIds), ...unpackIds(sampledIds)]);
  }

  messages(ids: Int32Array): ContextMessage[] {
    return this.contexts.messages(this.tokenizer.decode(ids));
  }

  /**
   * What a turn said. Which calls it made is what the record says, not what would be found today; arguments of a
   * syntax that does not name them have their places as names.
   */
  reply({ sampledIds, toolCalls }: Turn): ReadReply {
    const { reasoning, opensInReasoning } = this.renderer.traits;
    const parser = new ReplyParser({
      tokenizer: this.tokenizer,
      format: toolCalls.length > 0 ? this.format : undefined,
      tools: toolCalls.map(placesOf),
      reasoning,
      opensInReasoning,
      stopIds: this.stopIds,
    });
    return joined([...parser.push(unpackIds(sampledIds)), ...parser.end()], toolCalls);
  }
}

function placesOf({ name }: SampledToolCall): ToolSchema {
  const places = Array.from({ length: MAX_POSITIONS }, (_, at) => [`argument${at + 1}`, {}] as const);
  return { name, description: "", parameters: { type: "object", properties: Object.fromEntries(places) } };
}

function joined(parts: readonly SampledPart[], recorded: readonly SampledToolCall[]): ReadReply {
  const textOf = (kind: "text" | "reasoning") =>
    parts.map((part) => (part.kind === kind ? part.text : "")).join("");
  const starts = parts.filter((part) => part.kind === "call-start");
  return {
    text: textOf("text"),
    reasoning: textOf("reasoning"),
    calls: starts.map(({ call, name }) => ({
      id: recorded[call]?.id ?? "",
      name,
      arguments: parts
        .map((part) => (part.kind === "call-arguments" && part.call === call ? part.text : ""))
        .join(""),
      isCut: !parts.some((part) => part.kind === "call-end" && part.call === call),
    })),
  };
}
