/** Recordings of OpenCode and pi: every body is read, and nothing of it is lost on the way. */
import { describe, expect, test } from "vitest";
import { chatDialect } from "../src/index.js";
import { exchanges, exchangesOf } from "./recordings.js";

const ALL = exchanges("/chat/completions");
const read = (body: unknown) => chatDialect.read(body);

test("every recorded request is read, with the limit and the usage it asked for", () => {
  expect(ALL).toHaveLength(110);
  for (const { body } of ALL)
    expect(read(body)).toMatchObject({
      model: body.model,
      isStream: true,
      wantsUsage: true,
      wantsTokens: false,
      requested: { maxTokens: body.max_tokens ?? body.max_completion_tokens },
      audit: [],
    });
});

test("[68] every message is one message, the developer's the system's", () => {
  for (const { body } of ALL)
    expect(read(body).conversation.messages.map(({ role }) => role)).toEqual(
      body.messages.map(({ role }: { role: string }) => (role === "developer" ? "system" : role)),
    );
});

test("[72] every tool is offered under its name, with its schema", () => {
  for (const { body } of ALL) {
    const offered = read(body).conversation.tools.map(({ name, parameters }) => [name, parameters]);
    const tools: { function: { name: string; parameters: unknown } }[] = body.tools ?? [];
    expect(offered).toEqual(tools.map((tool) => [tool.function.name, tool.function.parameters]));
  }
});

test("[73] [74] calls and reasoning are as they were sent", () => {
  for (const { body } of ALL)
    read(body).conversation.messages.forEach((message, at) => {
      if (message.role !== "assistant") return;
      const sent = body.messages[at];
      expect(message.reasoning).toBe(sent.reasoning_content ?? "");
      expect(message.text).toBe(sent.content ?? "");
      expect(message.toolCalls.map(({ id, name, arguments: text }) => [id, name, text])).toEqual(
        (sent.tool_calls ?? []).map((call: { id: string; function: { name: string; arguments: string } }) => [
          call.id,
          call.function.name,
          call.function.arguments,
        ]),
      );
    });
});

describe("each request of a run extends the one before", () => {
  test.each(["oc-tools", "pi-chat"])("%s", (recording) => {
    const runs = exchangesOf(recording, "/chat/completions").filter(({ body }) => body.tools?.length > 0);
    expect(runs.length).toBeGreaterThan(5);
    for (const [at, { body }] of runs.slice(1).entries()) {
      const known = read(runs[at]?.body).conversation.messages;
      const { messages } = read(body).conversation;
      expect(messages.slice(0, known.length)).toEqual(known);
      expect(messages[known.length]?.role).toBe("assistant");
    }
  });
});
