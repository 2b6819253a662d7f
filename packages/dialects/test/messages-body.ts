/** Bodies of Anthropic Messages, as short as a test can say them, and what reading them gives. */
import { type ModelRequest, messagesDialect } from "../src/index.js";

export const bodyOf = (fields: object) => ({
  model: "m",
  max_tokens: 100,
  messages: [{ role: "user", content: "hi" }],
  ...fields,
});
export const read = (fields: object): ModelRequest => messagesDialect.read(bodyOf(fields));
export const messagesOf = (messages: unknown, fields: object = {}) =>
  read({ messages, ...fields }).conversation.messages;
export const user = (...content: unknown[]) => ({ role: "user", content });
export const assistant = (...content: unknown[]) => ({ role: "assistant", content });
export const text = (value: string) => ({ type: "text", text: value });
export const use = (id: string, input: unknown = {}) => ({ type: "tool_use", id, name: "f", input });
export const result = (id: string, content?: unknown, more: object = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  ...(content !== undefined && { content }),
  ...more,
});
