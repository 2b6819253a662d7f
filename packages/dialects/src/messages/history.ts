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
  return joinRuns(given.flatMap((one, at) => readMessage(one, `messages[${at}]`, audit)));
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

/** Each run of one role is joined once, so that a long run costs what it is long. */
function joinRuns(messages: readonly Message[]): Message[] {
  const joined: Message[] = [];
  let at = 0;
  while (at < messages.length) {
    const { role } = messages[at]!;
    let end = at + 1;
    if (role === "user" || role === "assistant") while (messages[end]?.role === role) end++;
    joined.push(end - at === 1 ? messages[at]! : joinRun(messages.slice(at, end)));
    at = end;
  }
  return joined;
}

function joinRun(run: readonly Message[]): Message {
  const replies = run.filter((message) => message.role === "assistant");
  if (replies.length === 0) return { role: "user", text: joinTexts(run.map(({ text }) => text)) };
  return {
    role: "assistant",
    text: replies.map(({ text }) => text).join(""),
    reasoning: replies.map(({ reasoning }) => reasoning).join(""),
    toolCalls: replies.flatMap(({ toolCalls }) => toolCalls),
  };
}

/** Joined by a newline where there is none already; empty texts join nothing. */
function joinTexts(texts: readonly string[]): string {
  const said = texts.filter((text) => text !== "");
  const isLast = (at: number) => at === said.length - 1;
  return said.map((text, at) => (isLast(at) || text.endsWith("\n") ? text : `${text}\n`)).join("");
}
