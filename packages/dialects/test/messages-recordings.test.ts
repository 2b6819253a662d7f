/** Recordings of Claude Code, OpenCode and pi: every body is read, and nothing of it is lost on the way. */
import { readdirSync, readFileSync } from "node:fs";
import type { Message } from "@mortise/capture";
import { describe, expect, test } from "vitest";
import { type ModelRequest, messagesDialect } from "../src/index.js";

const DIRECTORY = new URL("../../../test/fixtures/harness-traces/", import.meta.url);

interface Block {
  readonly type: string;
  readonly id: string;
  readonly tool_use_id: string;
  readonly text: string;
  readonly thinking: string;
  readonly content?: string | readonly Block[];
}

interface Body {
  readonly system: readonly Block[];
  readonly messages: readonly { readonly role: string; readonly content: string | readonly Block[] }[];
  readonly tools?: readonly { readonly name: string; readonly defer_loading?: boolean }[];
}

interface Recorded {
  readonly id: number;
  readonly body: Body;
  readonly request: ModelRequest;
}

interface Call {
  readonly id: string;
  readonly raw: string;
}

/** What the server answered: text and calls, or blocks of both. */
interface Step {
  readonly text?: string;
  readonly tools?: readonly Call[];
  readonly blocks?: readonly (Call & { readonly text?: string })[];
}

interface Recording {
  readonly name: string;
  readonly requests: readonly Recorded[];
  readonly steps: readonly Step[];
}

function load(name: string): Recording {
  const lines = readFileSync(new URL(name, DIRECTORY), "utf8").split("\n").filter(Boolean);
  const events = lines.map((line) => JSON.parse(line) as { id: number; body?: Body; step?: Step });
  const requests = events.flatMap(({ id, body }) =>
    body?.messages ? [{ id, body, request: messagesDialect.read(body) }] : [],
  );
  return { name, requests, steps: events.flatMap(({ step }) => (step ? [step] : [])) };
}

const recordings = readdirSync(DIRECTORY)
  .filter((name) => /^(cc|oc-anthropic|pi-anthropic).*\.jsonl$/.test(name))
  .map(load);

const blocksOf = (content: string | readonly Block[]): readonly Block[] =>
  typeof content === "string" ? [{ type: "text", text: content } as Block] : content;
const assistantsOf = (messages: readonly Message[]) =>
  messages.filter((message) => message.role === "assistant");
const joined = (blocks: readonly Block[], type: "text" | "thinking") =>
  blocks.map((block) => (block.type === type ? block[type] : "")).join("");

test("all of them are there", () => {
  expect(recordings.length).toBeGreaterThanOrEqual(50);
  expect(recordings.flatMap(({ requests }) => requests)).toHaveLength(146);
});

describe.each(recordings)("$name", ({ requests, steps }) => {
  test("[22-27] every text, thought, call and result is in the conversation, in its place", () => {
    for (const { body, request } of requests) {
      const { messages } = request.conversation;
      const given = body.messages.flatMap(({ role, content }) =>
        blocksOf(content).map((block) => ({ role, block })),
      );
      const of = (role: string, type: string) =>
        given.flatMap((one) => (one.role === role && one.block.type === type ? [one.block] : []));
      const replies = assistantsOf(messages);
      expect(replies).toHaveLength(body.messages.filter(({ role }) => role === "assistant").length);
      expect(replies.map(({ text }) => text).join("")).toBe(joined(of("assistant", "text"), "text"));
      expect(replies.map(({ reasoning }) => reasoning).join("")).toBe(
        joined(of("assistant", "thinking"), "thinking"),
      );
      const calls = replies.flatMap(({ toolCalls }) => toolCalls.map(({ id }) => id));
      expect(calls).toEqual(of("assistant", "tool_use").map(({ id }) => id));
      const results = messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : []));
      expect(results.sort()).toEqual(
        of("user", "tool_result")
          .map((block) => block.tool_use_id)
          .sort(),
      );
      const said = messages.flatMap((message) => (message.role === "user" ? [message.text] : []));
      expect(said.join("")).toBe(joined(of("user", "text"), "text"));
      const prompts = messages.flatMap((message) => (message.role === "system" ? [message.text] : []));
      expect(prompts.join("")).toBe(joined([...body.system, ...of("system", "text")], "text"));
    }
  });

  test("[36] the tools are offered in their order, deferred ones once they are referenced", () => {
    for (const { body, request } of requests) {
      const offered = request.conversation.tools.map(({ name }) => name);
      const referenced = JSON.stringify(body.messages);
      const visible = (body.tools ?? []).filter(
        ({ name, defer_loading }) => !defer_loading || referenced.includes(`"tool_name":"${name}"`),
      );
      expect(offered).toEqual(visible.map(({ name }) => name));
    }
  });

  test("[31] a call that came back is one that was made, its text recovered where it did not parse", () => {
    const given = steps.flatMap(({ tools, blocks }) => [...(tools ?? []), ...(blocks ?? [])]);
    const made = new Map(given.map((call) => [call.id, call]));
    for (const { request } of requests) {
      const recovered = request.audit.filter((note) => note.what === "arguments-recovered");
      const calls = assistantsOf(request.conversation.messages).flatMap((reply) => reply.toolCalls);
      expect(calls.filter((call) => !made.has(call.id))).toEqual([]);
      const unparsed = calls.filter((call) => !isJson(call.arguments));
      expect(unparsed).toHaveLength(recovered.length);
      for (const call of unparsed) expect(call.arguments).toBe(made.get(call.id)!.raw);
    }
  });
});

test("[45] a reply's text comes back to the letter, which is how one without calls is known", () => {
  let compared = 0;
  for (const { requests, steps } of recordings) {
    const said = steps.map(
      ({ text, blocks }) => text ?? (blocks ?? []).map((one) => one.text ?? "").join(""),
    );
    for (const { request } of requests)
      for (const { text } of assistantsOf(request.conversation.messages)) {
        expect(said).toContain(text);
        compared++;
      }
  }
  expect(compared).toBeGreaterThan(100);
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test("[25] Claude Code's late system messages are found behind the user's", () => {
  const { requests } = recordings.find(({ name }) => name === "cc-tools.jsonl")!;
  for (const { request } of requests)
    expect(request.conversation.messages.slice(0, 3).map(({ role }) => role)).toEqual([
      "system",
      "user",
      "system",
    ]);
});

test.each(["cc-tools.jsonl", "cc-tools-rec.jsonl", "oc-anthropic.jsonl", "pi-anthropic-messages.jsonl"])(
  "[28] %s: without cache marks each request begins with all of the one before",
  (wanted) => {
    const { requests } = recordings.find(({ name }) => name === wanted)!;
    const agent = requests.filter(({ body }) => (body.tools ?? []).length > 0);
    expect(agent.length).toBeGreaterThan(5);
    for (const [at, { request }] of agent.entries()) {
      const before = agent[at - 1]?.request.conversation.messages ?? [];
      expect(request.conversation.messages.slice(0, before.length)).toEqual(before);
    }
  },
);

test("[36] Claude Code's tool search brings one tool into the schema, and the placeholder never", () => {
  const { requests } = recordings.find(({ name }) => name === "ccm-envmodel.jsonl")!;
  const offered = requests.map(({ request }) => request.conversation.tools.map(({ name }) => name));
  expect(offered[0]).not.toContain("WebFetch");
  expect(offered.at(-1)).toEqual([...offered[0]!, "WebFetch"].sort());
  expect(offered.flat()).not.toContain("DeferredToolPlaceholder");
});
