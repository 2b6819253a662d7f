/**
 * Owns turning conversations into token ids with a checkpoint's chat template, under the policies of the run
 * (C2). A conversation without a captured beginning is rendered whole; an extension renders only what follows
 * the parent's reply, cut at the end-of-turn token, so that encode(a) + encode(b) = encode(ab). Does not decide
 * what extends what.
 *
 * History policies, for templates that would write earlier turns differently today:
 *  - `keep`    sampled ids stay until the harness itself changes history; a request that extends them adds what
 *              the template writes after any reply. Possible where that depends on nothing earlier (traits.ts).
 *  - `branch`  every request is rendered whole, as the template has it: a branch of its own.
 *  - `strip`   as `branch`, and reasoning of earlier turns is never shown.
 */
import type { Conversation, Message, ToolSchema } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { ChatTemplate, Tokenizer } from "@mortise/policy";
import { type LateSystemPolicy, placeLaterSystemMessages, placeSystemMessages } from "./late-system.js";
import type { RenderNote } from "./note.js";
import { TemplateWriter } from "./template-writer.js";
import { type TemplateTraits, takesArgumentText, templateTraits } from "./traits.js";

export type HistoryPolicy = "keep" | "branch" | "strip";

/** What the run configuration says of rendering (`policy.*`). */
export interface RenderingPolicy {
  /** `auto`: keep where the template allows it, else branch. */
  readonly history?: HistoryPolicy | "auto" | undefined;
  readonly lateSystem?: LateSystemPolicy | undefined;
  /** The template's `enable_thinking`; `template` leaves it as the template has it. */
  readonly thinking?: "template" | "on" | "off" | undefined;
}

export interface RendererParts {
  readonly chatTemplate: ChatTemplate;
  readonly tokenizer: Tokenizer;
  readonly eosIds: ReadonlySet<number>;
  readonly policy?: RenderingPolicy;
  /** Further variables of the template, such as a fixed date. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

export interface Rendering {
  readonly ids: Int32Array;
  readonly notes: readonly RenderNote[];
}

/** More tokens than were wanted; not all of them were made. */
export interface TooLong {
  /** About how many there would be. */
  readonly tooLong: number;
}

export class Renderer {
  readonly history: HistoryPolicy;
  readonly lateSystem: LateSystemPolicy;
  readonly traits: TemplateTraits;
  readonly writer: TemplateWriter;
  private readonly tokenizer: Tokenizer;
  private readonly eosIds: ReadonlySet<number>;

  /** @throws MortiseError MORTISE_POLICY_UNSUPPORTED when the template cannot serve a policy that was asked for */
  constructor(parts: RendererParts) {
    const { chatTemplate, tokenizer, eosIds, policy = {} } = parts;
    const variables = { ...parts.variables, ...thinkingVariables(policy.thinking) };
    const form = { takesArgumentText: true, showsReasoning: true };
    const takesText = takesArgumentText(new TemplateWriter(chatTemplate, variables, form));
    const writerFor = (showsReasoning: boolean) =>
      new TemplateWriter(chatTemplate, variables, { takesArgumentText: takesText, showsReasoning });
    this.traits = templateTraits({
      source: chatTemplate.source,
      writer: writerFor(true),
      tokenizer,
      eosIds,
    });
    this.history = historyPolicy(policy.history ?? "auto", this.traits);
    this.lateSystem = policy.lateSystem ?? "to-user";
    if (this.lateSystem === "keep" && !this.traits.takesLateSystem) throw refusesLateSystem();
    this.writer = writerFor(this.history !== "strip");
    this.tokenizer = tokenizer;
    this.eosIds = eosIds;
    if ((policy.thinking ?? "template") !== "template") this.requireThinkingSwitch(parts);
  }

  /** The text and ids of a whole conversation, up to where the assistant's turn begins. */
  renderWhole(conversation: Conversation): Rendering & { text: string } {
    const { text, notes } = this.writeWhole(conversation);
    return { text, ids: this.tokenizer.encode(text), notes };
  }

  /** The ids of a whole conversation, when there are at most `maxTokens`. */
  renderWholeWithin(conversation: Conversation, maxTokens: number): Rendering | TooLong {
    const { text, notes } = this.writeWhole(conversation);
    const ids = this.tokenizer.encodeWithin(text, maxTokens);
    return "estimate" in ids ? { tooLong: ids.estimate } : { ids, notes };
  }

  /**
   * The ids to append after a captured reply: its end-of-turn token unless `hasEnd`, glue, the new messages,
   * and the beginning of the next assistant turn. Undefined when a policy wants the conversation rendered whole.
   * @param from index of the first new message; nothing before it is looked at
   */
  renderExtension(conversation: Conversation, from: number, hasEnd: boolean): Rendering | undefined {
    return this.renderExtensionWithin(conversation, from, hasEnd, Number.POSITIVE_INFINITY) as
      | Rendering
      | undefined;
  }

  /** As `renderExtension`, when there are at most `maxTokens`. */
  renderExtensionWithin(
    conversation: Conversation,
    from: number,
    hasEnd: boolean,
    maxTokens: number,
  ): Rendering | TooLong | undefined {
    if (this.history !== "keep") return undefined;
    const added = conversation.messages.slice(from);
    const placed = placeLaterSystemMessages(added, this.lateSystem, from);
    if (!placed) return undefined;
    const tail = this.tail(placed.messages, conversation.tools);
    const ids = this.tokenizer.encodeWithin(tail, maxTokens + Number(hasEnd));
    if ("estimate" in ids) return { tooLong: ids.estimate };
    if (ids[0] === undefined || !this.eosIds.has(ids[0])) throw endsNoReply();
    const notes = [...placed.notes, ...this.formNotes(added, from)];
    return { ids: hasEnd ? ids.subarray(1) : ids, notes };
  }

  /**
   * About how much `renderExtension` (or, without `from`, `renderWhole`) has to read, in characters: by this a
   * caller decides where it is done.
   */
  weigh({ messages, tools }: Conversation, from = 0): number {
    const isWhole = from === 0 || this.history !== "keep";
    const shown = isWhole ? messages : messages.slice(from);
    const text = shown.reduce((sum, message) => sum + MESSAGE_WEIGHT + weightOf(message), 0);
    const showsTools = isWhole || !this.hidesTools(shown);
    return showsTools && tools.length > 0 ? text + JSON.stringify(tools).length : text;
  }

  private writeWhole(conversation: Conversation): { text: string; notes: RenderNote[] } {
    const { messages, notes } = placeSystemMessages(conversation.messages, this.lateSystem);
    const text = this.writer.text(messages, conversation.tools, true);
    return { text, notes: [...notes, ...this.formNotes(conversation.messages, 0)] };
  }

  /** Tools are shown to the template only where they can matter: their schemas may be longer than the rest. */
  private tail(messages: readonly Message[], tools: readonly ToolSchema[]): string {
    return this.writer.tail(messages, this.hidesTools(messages) ? [] : tools);
  }

  private hidesTools(messages: readonly Message[]): boolean {
    const hasCalls = messages.some((message) => message.role === "assistant" && message.toolCalls.length > 0);
    return this.traits.tailIgnoresTools && !hasCalls;
  }

  private formNotes(messages: readonly Message[], offset: number): RenderNote[] {
    return messages.flatMap((message, at): RenderNote[] => {
      if (message.role !== "assistant") return [];
      const field = `messages[${offset + at}]`;
      const notes: RenderNote[] = [];
      if (message.reasoning !== "" && !this.writer.form.showsReasoning)
        notes.push({ what: "reasoning-stripped", field });
      return notes;
    });
  }

  /** Without a switch the setting would be recorded and do nothing. */
  private requireThinkingSwitch({ chatTemplate, variables = {} }: RendererParts): void {
    const write = (thinking: "on" | "off") => {
      const writer = new TemplateWriter(
        chatTemplate,
        { ...variables, ...thinkingVariables(thinking) },
        this.writer.form,
      );
      return writer.text([{ role: "user", text: "x" }], [], true);
    };
    if (write("on") !== write("off")) return;
    throw new MortiseError({
      code: "MORTISE_POLICY_UNSUPPORTED",
      message: "policy.thinking: the chat template of this checkpoint has no switch for thinking.",
      fix: 'Leave policy.thinking at "template".',
      detail: { field: "policy.thinking" },
    });
  }
}

/** Characters of text that cost about as much as a template's work on one message. */
const MESSAGE_WEIGHT = 50;

function weightOf(message: Message): number {
  if (message.role !== "assistant") return message.text.length;
  const calls = message.toolCalls.reduce((sum, call) => sum + MESSAGE_WEIGHT + call.arguments.length, 0);
  return message.text.length + message.reasoning.length + calls;
}

function thinkingVariables(thinking: RenderingPolicy["thinking"]): Readonly<Record<string, unknown>> {
  return thinking === undefined || thinking === "template" ? {} : { enable_thinking: thinking === "on" };
}

function historyPolicy(wanted: HistoryPolicy | "auto", traits: TemplateTraits): HistoryPolicy {
  if (wanted === "auto") return traits.isTailStable ? "keep" : "branch";
  if (wanted !== "keep" || traits.isTailStable) return wanted;
  throw new MortiseError({
    code: "MORTISE_POLICY_UNSUPPORTED",
    message: "policy.history: what this chat template writes after a reply depends on earlier messages.",
    fix: 'Use "branch", or "auto" to let the template decide.',
    detail: { field: "policy.history" },
  });
}

function refusesLateSystem(): MortiseError {
  return new MortiseError({
    code: "MORTISE_POLICY_UNSUPPORTED",
    message: "policy.lateSystem: this chat template takes no system message behind a reply.",
    fix: 'Use "to-user" or "merge-up".',
    detail: { field: "policy.lateSystem" },
  });
}

function endsNoReply(): MortiseError {
  return new MortiseError({
    code: "MORTISE_POLICY_UNSUPPORTED",
    message: "The chat template does not end an assistant message with an end-of-turn token.",
    fix: "Use a chat template that closes assistant messages with the eos token of the checkpoint.",
  });
}
