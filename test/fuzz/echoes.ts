/**
 * Owns going on from a reply as a harness does: the body of the next call is the last one with the reply and
 * the results of its calls behind it, in the protocol's own words.
 */
import type { DialectName } from "@mortise/dialects";

type Json = Record<string, unknown>;

/** @param reply the whole reply, as JSON of the protocol */
export function nextBody(dialect: DialectName, body: unknown, reply: string): string | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const before = body as Json;
  const after = JSON.parse(reply) as Json;
  if (dialect === "openai-chat") return withMessages(before, chatMessages(after));
  if (dialect === "anthropic-messages") return withMessages(before, anthropicMessages(after));
  const input = typeof before.input === "string" ? [{ role: "user", content: before.input }] : before.input;
  return Array.isArray(input) ? jsonOf({ ...before, input: [...input, ...items(after)] }) : undefined;
}

function withMessages(before: Json, added: readonly Json[]): string | undefined {
  if (!Array.isArray(before.messages)) return undefined;
  return jsonOf({ ...before, messages: [...before.messages, ...added] });
}

/** Undefined for a body with something deeper in it than a serialiser's stack, in a field that nobody reads. */
function jsonOf(body: Json): string | undefined {
  try {
    return JSON.stringify(body);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function chatMessages(reply: Json): Json[] {
  const { message } = (reply.choices as { message: Json }[])[0]!;
  const calls = (message.tool_calls ?? []) as { id: string }[];
  const results = calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "done" }));
  return [message, ...(results.length > 0 ? results : [{ role: "user", content: "go on" }])];
}

function anthropicMessages(reply: Json): Json[] {
  const content = reply.content as { type: string; id: string }[];
  const calls = content.filter(({ type }) => type === "tool_use");
  const results = calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "done" }));
  const next = results.length > 0 ? results : [{ type: "text", text: "go on" }];
  return [
    { role: "assistant", content },
    { role: "user", content: next },
  ];
}

function items(reply: Json): Json[] {
  const output = reply.output as { type: string; call_id: string }[];
  const results = output.flatMap(({ type, call_id }) =>
    type === "function_call" || type === "custom_tool_call"
      ? [{ type: `${type}_output`, call_id, output: "done" }]
      : [],
  );
  const next = results.length > 0 ? results : [{ role: "user", content: "go on" }];
  return [...output, ...next];
}
