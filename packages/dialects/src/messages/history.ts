/**
 * Owns turning the messages of a request into the conversation's: blocks keep the order they came in, so that
 * the results of tools become `tool` messages and the text around them `user` messages. System messages stay
 * where they are; where a template may have them is the renderer's policy.
 *
 * Consecutive messages of one role become one, since templates may demand that roles alternate. Users' texts are
 * joined by a newline, which is what Claude Code puts between texts it joins; an assistant's by nothing, so that
 * a reply sent back in pieces is again the text it was. System messages stay apart: the policy for late ones
 * needs to see each in its place.
 */
import type { Message, ToolCall } from "@mortise/capture";
import { bad, isObject, nonEmptyString, object, optionalArray, string, textOf } from "../fields.js";
import type { Audit } from "./audit.js";
import { type Block, nestedText, promptText, readBlocks } from "./content.js";

type Assistant = Extract<Message, { role: "assistant" }>;

/** Shown where a failed tool said nothing: templates have no place for the failure itself. */
const SILENT_FAILURE = "[the tool failed without a message]";

/** The `system` field as the conversation's first message; none when it holds nothing. */
export function readSystem(value: unknown, audit: Audit): Message[] {
  const text = promptBlocks(value, "system", audit);
  return text === "" ? [] : [{ role: "system", text }];
}

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readHistory(value: unknown, audit: Audit): Message[] {
  const given = optionalArray(value, "messages");
  if (given.length === 0) throw bad("messages", "is empty");
  const messages: Message[] = [];
  for (const [at, one] of given.entries())
    for (const message of readMessage(one, `messages[${at}]`, audit)) join(messages, message);
  return messages;
}

function readMessage(value: unknown, field: string, audit: Audit): Message[] {
  const { role, content } = object(value, field);
  const place = `${field}.content`;
  switch (role) {
    case "system":
      return [{ role: "system", text: promptBlocks(content, place, audit) }];
    case "user":
      return userMessages(readBlocks(content, place), audit);
    case "assistant":
      return [assistantMessage(readBlocks(content, place), audit)];
    default:
      throw bad(`${field}.role`, "is not user, assistant or system");
  }
}

function promptBlocks(content: unknown, field: string, audit: Audit): string {
  return readBlocks(content, field)
    .map((one) => promptText(one, audit))
    .join("");
}

/** A message of nothing but tool results has no text of its own; one of nothing at all is an empty text. */
function userMessages(blocks: readonly Block[], audit: Audit): Message[] {
  const messages: Message[] = [];
  let texts: string[] = [];
  const endText = () => {
    if (texts.length > 0) messages.push({ role: "user", text: texts.join("") });
    texts = [];
  };
  for (const one of blocks) {
    if (one.type === "tool_use") throw bad(`${one.field}.type`, "is tool_use in a user message");
    if (one.type === "tool_result") {
      endText();
      messages.push(toolResult(one, audit));
    } else {
      texts.push(promptText(one, audit));
    }
  }
  endText();
  return messages.length > 0 ? messages : [{ role: "user", text: "" }];
}

function toolResult({ block, field }: Block, audit: Audit): Message {
  const toolCallId = nonEmptyString(block.tool_use_id, `${field}.tool_use_id`);
  const text = nestedText(block.content, `${field}.content`, audit);
  if (block.is_error !== true || text !== "") return { role: "tool", text, toolCallId };
  audit.note("failure-worded", field);
  return { role: "tool", text: SILENT_FAILURE, toolCallId };
}

/** Blocks a policy here cannot have written are left out: nothing is put into its mouth. */
function assistantMessage(blocks: readonly Block[], audit: Audit): Assistant {
  let text = "";
  let reasoning = "";
  const toolCalls: ToolCall[] = [];
  for (const one of blocks) {
    const { type, block, field } = one;
    switch (type) {
      case "text":
        text += string(block.text, `${field}.text`);
        break;
      case "thinking":
        // Its signature only names the turn; calls and text identify it as well, so it is neither read nor missed.
        if (typeof block.thinking === "string") reasoning += block.thinking;
        break;
      case "redacted_thinking":
        audit.note("redacted-reasoning-dropped", field);
        break;
      case "tool_use":
        toolCalls.push(toolCall(one, audit));
        break;
      case "tool_result":
        throw bad(`${field}.type`, "is tool_result in an assistant message");
      default:
        audit.note("block-dropped", field);
    }
  }
  return { role: "assistant", text, reasoning, toolCalls };
}

function toolCall({ block, field }: Block, audit: Audit): ToolCall {
  return {
    id: nonEmptyString(block.id, `${field}.id`),
    name: nonEmptyString(block.name, `${field}.name`),
    arguments: argumentText(block.input, `${field}.input`, audit),
  };
}

/** The protocol has objects where the policy writes text; text that did not parse comes back wrapped. */
function argumentText(input: unknown, field: string, audit: Audit): string {
  if (isObject(input) && isObject(input.__unparsedToolInput)) {
    const { raw } = input.__unparsedToolInput;
    if (typeof raw === "string") {
      audit.note("arguments-recovered", field);
      return raw;
    }
  }
  return textOf(input, field);
}

function join(messages: Message[], next: Message): void {
  const last = messages.at(-1);
  if (last?.role === "user" && next.role === "user")
    messages[messages.length - 1] = { role: "user", text: joinTexts(last.text, next.text) };
  else if (last?.role === "assistant" && next.role === "assistant")
    messages[messages.length - 1] = {
      role: "assistant",
      text: last.text + next.text,
      reasoning: last.reasoning + next.reasoning,
      toolCalls: [...last.toolCalls, ...next.toolCalls],
    };
  else messages.push(next);
}

function joinTexts(before: string, after: string): string {
  if (before === "" || after === "" || before.endsWith("\n")) return before + after;
  return `${before}\n${after}`;
}
