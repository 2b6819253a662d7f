/** Recordings of Codex: every body is read, and nothing of it is lost on the way. */
import { describe, expect, test } from "vitest";
import { responsesDialect } from "../src/index.js";
import { exchanges, exchangesOf } from "./recordings.js";

type Message = ReturnType<typeof responsesDialect.read>["conversation"]["messages"][number];

const ALL = exchanges("/responses");
const read = (body: unknown) => responsesDialect.read(body);
const calls = (messages: readonly Message[]) =>
  messages.flatMap((message) => (message.role === "assistant" ? message.toolCalls : []));

test("every recorded request is read", () => {
  expect(ALL).toHaveLength(99);
  for (const { body } of ALL) {
    const request = read(body);
    expect(request).toMatchObject({ model: body.model, isStream: true, toolChoice: { mode: "auto" } });
  }
});

test("[94] the developer messages are one leading system message", () => {
  for (const { body } of ALL) {
    const { messages } = read(body).conversation;
    expect(messages.map(({ role }) => role).lastIndexOf("system")).toBe(0);
    for (const item of body.input)
      if (item.role === "developer")
        for (const part of item.content) expect(messages[0]?.text).toContain(part.text);
  }
});

test("[96] the tools of the namespace are offered, the hosted ones listed", () => {
  for (const { body } of ALL) {
    const { conversation, hostedTools, toolTargets } = read(body);
    const isCompaction = body.tools.length === 0;
    expect(hostedTools).toEqual(isCompaction ? [] : ["web_search"]);
    expect(toolTargets.get("multi_agent_v1__spawn_agent")?.namespace).toBe(
      conversation.tools.some(({ name }) => name === "multi_agent_v1__spawn_agent")
        ? "multi_agent_v1"
        : undefined,
    );
    expect(new Set(conversation.tools.map(({ name }) => name)).size).toBe(conversation.tools.length);
  }
});

test("[98] calls keep their order, and each result stands behind the turn that called", () => {
  for (const { body } of ALL) {
    const { messages } = read(body).conversation;
    const ids = (type: RegExp) =>
      body.input.flatMap((item: { type: string; call_id: string }) =>
        type.test(item.type) ? [item.call_id] : [],
      );
    expect(calls(messages).map(({ id }) => id)).toEqual(ids(/_call$/).filter(Boolean));
    const results = messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : []));
    expect(new Set(results)).toEqual(new Set(ids(/_call_output$/)));
    const roles = messages.map(({ role }) => role);
    roles.forEach((role, at) => {
      if (role === "tool") expect(["assistant", "tool"]).toContain(roles[at - 1]);
    });
  }
});

test("[113] what was played as arguments comes back to the byte", () => {
  const recorded = exchangesOf("cx-tools", "/responses");
  const played = recorded.flatMap(({ step }) => step?.tools ?? []);
  const echoed = new Map(
    calls(read(recorded.at(-1)?.body).conversation.messages).map((call) => [call.id, call]),
  );
  expect(played.length).toBeGreaterThan(5);
  for (const { id, raw, custom } of played)
    expect(echoed.get(id)?.arguments).toBe(custom ? JSON.stringify({ input: raw }) : raw);
});

describe("what was one played reply is one message of the next request", () => {
  const recorded = exchangesOf("cx-tools", "/responses");
  test.each(recorded.slice(1).map((exchange, at) => [recorded[at]?.step.label, exchange] as const))(
    "%s",
    (label, { body }) => {
      const before = recorded.find(({ step }) => step.label === label)!;
      const known = read(before.body).conversation.messages;
      const { messages } = read(body).conversation;
      expect(messages.slice(0, known.length)).toEqual(known);
      const reply = messages[known.length];
      expect(reply?.role).toBe("assistant");
      expect(messages.slice(known.length + 1).every(({ role }) => role === "tool")).toBe(true);
      if (before.step.text !== undefined) expect(reply?.text).toBe(before.step.text);
    },
  );
});

test("[93] what a hosted tool left in the history is dropped with a note, and the turn stays one", () => {
  const { audit, conversation } = read(exchangesOf("cx-tools", "/responses").at(-1)?.body);
  expect(audit).toEqual([{ what: "item-dropped", field: "input[28]" }]);
  expect(conversation.messages.at(-2)).toMatchObject({ role: "assistant", text: "phase" });
});
