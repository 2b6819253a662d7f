/** Conversations of Anthropic Messages, as they are read. Numbers are those of the front's checklist. */
import { digestRequest } from "@mortise/capture";
import { describe, expect, test } from "vitest";
import { assistant, messagesOf, read, result, text, use, user } from "./messages-body.js";

const HEADER = "x-anthropic-billing-header: cc_version=1.0.abc; cc_entrypoint=cli;";

describe("the prompt", () => {
  test("[22] the system prompt is a string or an array of blocks", () => {
    const expected = { role: "system", text: "be brief" };
    expect(messagesOf([user(text("hi"))], { system: "be brief" })[0]).toEqual(expected);
    const blocks = [text("be "), { ...text("brief"), cache_control: { type: "ephemeral" } }];
    expect(messagesOf([user(text("hi"))], { system: blocks })[0]).toEqual(expected);
    for (const system of [undefined, null, "", []])
      expect(messagesOf([user(text("hi"))], { system })).toEqual([{ role: "user", text: "hi" }]);
  });

  test("[23] a billing header block is dropped, whatever its nonce, and noted", () => {
    const asked = (header: string) => read({ system: [text(header), text("be brief")] });
    const { conversation, audit } = asked(HEADER);
    expect(conversation.messages[0]).toEqual({ role: "system", text: "be brief" });
    expect(audit).toEqual([{ what: "volatile-header-dropped", field: "system[0]" }]);
    expect(asked(HEADER.replace("abc", "def")).conversation).toEqual(conversation);
    const joined = read({ system: `${HEADER}\nbe brief` });
    expect(joined.conversation).toEqual(conversation);
    expect(joined.audit).toEqual([{ what: "volatile-header-dropped", field: "system" }]);
  });

  test("[24] content is a string or blocks, and the two are equal", () => {
    expect(messagesOf([{ role: "user", content: "hi" }])).toEqual(messagesOf([user(text("h"), text("i"))]));
    expect(messagesOf([user(), { role: "assistant", content: "" }])).toEqual([
      { role: "user", text: "" },
      { role: "assistant", text: "", reasoning: "", toolCalls: [] },
    ]);
  });

  test("[25] system messages stay where they are", () => {
    const messages = messagesOf(
      [
        user(text("a")),
        { role: "system", content: [text("late")] },
        assistant(text("b")),
        { role: "system", content: "later" },
      ],
      { system: "first" },
    );
    expect(messages.map((message) => [message.role, message.text])).toEqual([
      ["system", "first"],
      ["user", "a"],
      ["system", "late"],
      ["assistant", "b"],
      ["system", "later"],
    ]);
  });

  test("[26] consecutive messages of one role are one; system messages stay apart", () => {
    const messages = messagesOf([
      user(text("a")),
      { role: "user", content: "b\n" },
      user(text("c")),
      assistant({ type: "thinking", thinking: "t" }, text("x")),
      assistant(text("y"), use("c1")),
      { role: "system", content: "s1" },
      { role: "system", content: "s2" },
    ]);
    expect(messages).toEqual([
      { role: "user", text: "a\nb\nc" },
      {
        role: "assistant",
        text: "xy",
        reasoning: "t",
        toolCalls: [{ id: "c1", name: "f", arguments: "{}" }],
      },
      { role: "system", text: "s1" },
      { role: "system", text: "s2" },
    ]);
  });

  test("[40] the last message may be a system message, or the beginning of a reply, which is context", () => {
    expect(messagesOf([user(text("a")), { role: "system", content: "s" }]).at(-1)).toEqual({
      role: "system",
      text: "s",
    });
    expect(messagesOf([user(text("a")), { role: "assistant", content: "The answer is" }]).at(-1)).toEqual({
      role: "assistant",
      text: "The answer is",
      reasoning: "",
      toolCalls: [],
    });
  });
});

describe("blocks", () => {
  test("[27] text, thinking and calls make one assistant message", () => {
    const [, reply] = messagesOf([
      user(text("a")),
      assistant(
        { type: "thinking", thinking: "one ", signature: "t1-0" },
        text("x"),
        { type: "thinking", thinking: "two", signature: "" },
        use("c1", { a: 1 }),
        text("y"),
      ),
    ]);
    expect(reply).toEqual({
      role: "assistant",
      text: "xy",
      reasoning: "one two",
      toolCalls: [{ id: "c1", name: "f", arguments: '{"a":1}' }],
    });
  });

  test("[27] a signature of thinking may be anything or absent", () => {
    const withSignature = (signature?: unknown) =>
      read({ messages: [user(text("a")), assistant({ type: "thinking", thinking: "t", signature })] });
    const plain = withSignature();
    for (const signature of ["", "trial-t1-0", null, 3]) expect(withSignature(signature)).toEqual(plain);
  });

  test("[27] redacted thinking has no text, and is noted", () => {
    const { conversation, audit } = read({
      messages: [user(text("a")), assistant({ type: "redacted_thinking", data: "opaque" }, text("b"))],
    });
    expect(conversation.messages[1]).toMatchObject({ text: "b", reasoning: "" });
    expect(audit).toEqual([{ what: "redacted-reasoning-dropped", field: "messages[1].content[0]" }]);
  });

  test("[27] images and documents become a short text, and are noted", () => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
    const pdf = { type: "document", source: { type: "url", url: "https://example.org/a.pdf" } };
    const { conversation, audit } = read({
      messages: [
        user(text("see "), image, pdf),
        assistant(use("c1")),
        user(result("c1", [text("out "), image])),
      ],
    });
    expect(conversation.messages.map((message) => message.text)).toEqual([
      "see [image omitted][file omitted]",
      "",
      "out [image omitted]",
    ]);
    expect(audit).toEqual([
      { what: "image-replaced", field: "messages[0].content[1]" },
      { what: "document-replaced", field: "messages[0].content[2]" },
      { what: "image-replaced", field: "messages[2].content[0].content[1]" },
    ]);
  });

  test("[27] documents and search results that have text are that text", () => {
    const plain = { type: "document", source: { type: "text", media_type: "text/plain", data: "plain " } };
    const nested = { type: "document", source: { type: "content", content: [text("nested ")] } };
    const found = { type: "search_result", source: "s", title: "t", content: [text("found")] };
    const { conversation, audit } = read({ messages: [user(plain, nested, found)] });
    expect(conversation.messages).toEqual([{ role: "user", text: "plain nested found" }]);
    expect(audit).toEqual([]);
  });

  test("[27] tool references name the tool they brought", () => {
    const reference = { type: "tool_reference", tool_name: "WebFetch" };
    const { conversation, audit } = read({
      messages: [user(text("a")), assistant(use("c1")), user(result("c1", [reference]))],
    });
    expect(conversation.messages[2]!.text).toBe("[tool available: WebFetch]");
    expect(audit).toEqual([{ what: "tool-reference-replaced", field: "messages[2].content[0].content[0]" }]);
  });

  test("[27] unknown blocks are stood in for; in an assistant's message they are left out", () => {
    const { conversation, audit } = read({
      messages: [user({ type: "new_kind" }), assistant({ type: "server_tool_use", id: "s1" }, text("b"))],
    });
    expect(conversation.messages.map((message) => message.text)).toEqual(["[content omitted]", "b"]);
    expect(audit.map((note) => note.what)).toEqual(["block-replaced", "block-dropped"]);
  });

  test("[28] cache marks change nothing, wherever they are", () => {
    const asked = (mark: object) =>
      read({
        system: [{ ...text("s"), ...mark }],
        tools: [{ name: "f", description: "d", input_schema: { type: "object" }, ...mark }],
        messages: [
          user({ ...text("a"), ...mark }),
          assistant({ ...use("c1"), ...mark }),
          user({ ...result("c1", [{ ...text("r"), ...mark }]), ...mark }),
        ],
      });
    const marked = asked({ cache_control: { type: "ephemeral", ttl: "1h" } });
    expect(marked).toEqual(asked({}));
    expect(digestRequest(marked.conversation)).toEqual(digestRequest(asked({}).conversation));
  });

  test("[29] a result is a string, blocks or absent; a failure without a word gets one", () => {
    const { conversation, audit } = read({
      messages: [
        user(text("a")),
        assistant(use("c1"), use("c2"), use("c3"), use("c4")),
        user(
          result("c1", "one"),
          result("c2", [text("t"), text("wo")], { is_error: true }),
          result("c3"),
          result("c4", [], { is_error: true }),
        ),
      ],
    });
    expect(conversation.messages.slice(2)).toEqual([
      { role: "tool", toolCallId: "c1", text: "one" },
      { role: "tool", toolCallId: "c2", text: "two" },
      { role: "tool", toolCallId: "c3", text: "" },
      { role: "tool", toolCallId: "c4", text: "[the tool failed without a message]" },
    ]);
    expect(audit).toEqual([{ what: "failure-worded", field: "messages[2].content[3]" }]);
  });

  test("[29] text beside results keeps its place", () => {
    const messages = messagesOf([
      user(text("a")),
      assistant(use("c1"), use("c2")),
      user(text("before"), result("c1", "r1"), text("be"), text("tween"), result("c2", "r2"), text("after")),
    ]);
    expect(messages.slice(2).map((message) => [message.role, message.text])).toEqual([
      ["user", "before"],
      ["tool", "r1"],
      ["user", "between"],
      ["tool", "r2"],
      ["user", "after"],
    ]);
  });

  test("[30] results come in any order, several in a message, and are put into the order of the calls", () => {
    const asked = (...order: string[]) =>
      messagesOf([
        user(text("a")),
        assistant(use("c1"), use("c2"), use("c3")),
        user(...order.map((id) => result(id, id))),
      ]);
    expect(asked("c1", "c3", "c2")).toEqual(asked("c1", "c2", "c3"));
    expect(asked("c1", "c3", "c2").slice(2)).toHaveLength(3);
  });

  test("[31] input becomes argument text; text that did not parse is recovered, and noted", () => {
    const raw = '{"command": "ls';
    const { conversation, audit } = read({
      messages: [
        user(text("a")),
        assistant(
          use("c1", { b: 1, a: [true, null] }),
          use("c2", { __unparsedToolInput: { raw, len: raw.length } }),
          use("c3", null),
          use("odd:id|/", {}),
        ),
      ],
    });
    expect(conversation.messages[1]).toMatchObject({
      toolCalls: [
        { id: "c1", arguments: '{"b":1,"a":[true,null]}' },
        { id: "c2", arguments: raw },
        { id: "c3", arguments: "{}" },
        { id: "odd:id|/", arguments: "{}" },
      ],
    });
    expect(audit).toEqual([{ what: "arguments-recovered", field: "messages[1].content[1].input" }]);
  });
});
