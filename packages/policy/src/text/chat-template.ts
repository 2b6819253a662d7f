/**
 * Owns rendering messages to text with a checkpoint's Jinja template. Does not tokenise, and does not decide what
 * of a conversation is rendered again: the proxy renders only what is new (C2).
 */
import { Template } from "@huggingface/jinja";
import { MortiseError } from "@mortise/contracts";
import type { TokenizerFiles } from "./tokenizer.js";

export type ChatMessage = Readonly<Record<string, unknown>>;
export type ToolSchema = Readonly<Record<string, unknown>>;

export interface RenderOptions {
  /** Ends the text where the assistant's turn begins. */
  readonly addGenerationPrompt: boolean;
  /** Further variables of the template, such as `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

type Json = Readonly<Record<string, unknown>>;

/** Special tokens are stored as text or as {content}. */
function tokenText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  const content = (value as { content?: unknown } | null | undefined)?.content;
  return typeof content === "string" ? content : undefined;
}

/** A template is one text or a list of named ones; `tool_use` is for requests with tools. */
function readTemplates(files: TokenizerFiles, config: Json): Map<string, string> {
  if (files.chatTemplateJinja !== undefined) return new Map([["default", files.chatTemplateJinja]]);
  const value = config.chat_template;
  if (typeof value === "string") return new Map([["default", value]]);
  const named = new Map<string, string>();
  for (const row of Array.isArray(value) ? value : []) {
    const { name, template } = row as { name?: unknown; template?: unknown };
    if (typeof name === "string" && typeof template === "string") named.set(name, template);
  }
  return named;
}

export class ChatTemplate {
  /** Jinja source of the default template. */
  readonly source: string;
  readonly #templates: ReadonlyMap<string, Template>;
  readonly #tokens: Json;

  /** @throws MortiseError when there is no template or it does not parse. */
  constructor(files: TokenizerFiles) {
    const config = JSON.parse(files.tokenizerConfigJson) as Json;
    const sources = readTemplates(files, config);
    if (!sources.has("default")) {
      throw new MortiseError({
        code: "MORTISE_POLICY_NO_CHAT_TEMPLATE",
        message: "tokenizer_config.json: chat_template is missing.",
        detail: { source: "tokenizer_config.json", field: "chat_template" },
      });
    }
    this.source = sources.get("default")!;
    this.#templates = new Map([...sources].map(([name, source]) => [name, compile(name, source)]));
    this.#tokens = Object.fromEntries(
      ["bos_token", "eos_token", "pad_token", "unk_token"].map((name) => [
        name,
        tokenText(config[name]) ?? "",
      ]),
    );
  }

  /**
   * @param messages as the template expects them (role, content, tool_calls with object arguments, …)
   * @param tools function schemas, or undefined for none
   * @throws MortiseError with the template's own complaint when it refuses the messages.
   */
  renderMessages(
    messages: readonly ChatMessage[],
    tools: readonly ToolSchema[] | undefined,
    options: RenderOptions,
  ): string {
    const hasTools = tools !== undefined && tools.length > 0;
    const template =
      (hasTools ? this.#templates.get("tool_use") : undefined) ?? this.#templates.get("default")!;
    try {
      return template.render({
        ...this.#tokens,
        ...options.variables,
        messages,
        tools: hasTools ? tools : null,
        add_generation_prompt: options.addGenerationPrompt,
      });
    } catch (cause) {
      throw new MortiseError({
        code: "MORTISE_PROVIDER_BAD_REQUEST",
        message: `messages: the chat template refuses them: ${(cause as Error).message}`,
        fix: "Send messages in the order and with the roles the template allows.",
        cause,
        detail: { field: "messages" },
      });
    }
  }
}

function compile(name: string, source: string): Template {
  try {
    return new Template(source);
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_POLICY_CHECKPOINT",
      message: `chat_template "${name}" is not valid Jinja: ${(cause as Error).message}`,
      cause,
      detail: { source: "tokenizer_config.json", field: "chat_template" },
    });
  }
}
