/**
 * Owns the text a chat template writes: of a whole conversation, of what follows any reply, of a reply itself.
 * Does not tokenise and knows no policy.
 */
import { randomBytes } from "node:crypto";
import type { Message, ToolSchema } from "@mortise/capture";
import type { ChatTemplate } from "@mortise/policy";
import { type MessageForm, templateMessage, templateTool } from "./template-messages.js";

/**
 * Letters and digits only, so that no template trims or escapes it. Random, so that no conversation holds it: a
 * known one in a tool's result would pass for the end of the reply, and what stands before it be lost.
 */
const MARKER = `reply${randomBytes(16).toString("hex")}`;

const BEFORE_REPLY: readonly Message[] = [{ role: "user", text: "x" }];

export class TemplateWriter {
  readonly form: MessageForm;
  private readonly template: ChatTemplate;
  private readonly variables: Readonly<Record<string, unknown>>;

  constructor(template: ChatTemplate, variables: Readonly<Record<string, unknown>>, form: MessageForm) {
    this.template = template;
    this.variables = variables;
    this.form = form;
  }

  /** @param opensReply whether the text goes on to where the assistant's next turn begins */
  text(messages: readonly Message[], tools: readonly ToolSchema[], opensReply: boolean): string {
    return this.template.renderMessages(
      messages.map((message) => templateMessage(message, this.form)),
      tools.length > 0 ? tools.map(templateTool) : undefined,
      { addGenerationPrompt: opensReply, variables: this.variables },
    );
  }

  /** What the template writes after any reply, up to the beginning of the next one. */
  tail(messages: readonly Message[], tools: readonly ToolSchema[]): string {
    const reply: Message = { role: "assistant", text: MARKER, reasoning: "", toolCalls: [] };
    const text = this.text([...BEFORE_REPLY, reply, ...messages], tools, true);
    return text.slice(text.lastIndexOf(MARKER) + MARKER.length);
  }

  /** What the template writes for a reply where the policy would sample it, end-of-turn token included. */
  reply(reply: Message & { role: "assistant" }, tools: readonly ToolSchema[]): string {
    const prompt = this.text(BEFORE_REPLY, tools, true);
    const whole = this.text([...BEFORE_REPLY, reply], tools, false);
    let shared = 0;
    while (shared < prompt.length && prompt[shared] === whole[shared]) shared++;
    return whole.slice(shared);
  }
}
