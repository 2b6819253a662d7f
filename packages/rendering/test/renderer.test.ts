/** Rendering under the policies of a run, with templates of each kind. */
import type { Conversation, Message } from "@mortise/capture";
import { describe, expect, test } from "vitest";
import { demoChatTemplate } from "../../../packages/tasks/src/demo/chat-template.js";
import { EDIT, tinyCheckpoint } from "./checkpoint.js";
import {
  COUNTING_TEMPLATE,
  FORGETFUL_TEMPLATE,
  FORGETS_THINKING_TEMPLATE,
  HERMES_TEMPLATE,
  LLAMA_TEMPLATE,
  STRICT_SYSTEM_TEMPLATE,
  XML_TEMPLATE,
} from "./templates.js";

const user = (text: string): Message => ({ role: "user", text });
const system = (text: string): Message => ({ role: "system", text });
const reply = (text: string, reasoning = ""): Message => ({
  role: "assistant",
  text,
  reasoning,
  toolCalls: [],
});
const calling = (given: string): Message => ({
  role: "assistant",
  text: "",
  reasoning: "",
  toolCalls: [{ id: "c", name: "edit", arguments: given }],
});
const result = (id: string): Message => ({ role: "tool", text: "ok", toolCallId: id });
const conversation = (...messages: Message[]): Conversation => ({ messages, tools: [] });

describe("extending", () => {
  test.each([
    ["demo", demoChatTemplate],
    ["hermes", HERMES_TEMPLATE],
  ])("%s: context, reply and extension equal the whole rendering", (_, template) => {
    const { renderer: make, tokenizer } = tinyCheckpoint(template);
    const renderer = make();
    expect(renderer.traits.isAppendOnly).toBe(true);
    for (const added of [[user("x")], [result("a")], [result("a"), result("b")], [result("a"), user("x")]]) {
      const parent = renderer.renderWhole({ messages: [user("fix")], tools: [EDIT] });
      const request = { messages: [user("fix"), reply("done"), ...added], tools: [EDIT] };
      const suffix = renderer.renderExtension(request, 2, true)!;
      const sampled = tokenizer.encode("done<|im_end|>");
      expect([...parent.ids, ...sampled, ...suffix.ids]).toEqual([...renderer.renderWhole(request).ids]);
    }
  });

  test("a reply without its end-of-turn token gets one", () => {
    const renderer = tinyCheckpoint(HERMES_TEMPLATE).renderer();
    const request = conversation(user("fix"), reply("don"), user("x"));
    const [first, ...rest] = renderer.renderExtension(request, 2, false)!.ids;
    expect(first).toBe(tinyCheckpoint(HERMES_TEMPLATE).tokenizer.idOf("<|im_end|>"));
    expect(rest).toEqual([...renderer.renderExtension(request, 2, true)!.ids]);
  });

  test("what lies before the new messages is not looked at", () => {
    const renderer = tinyCheckpoint(HERMES_TEMPLATE).renderer();
    const earlier = new Proxy([] as Message[], {
      get(target, key) {
        if (key === "slice") return (from: number) => (from === 40 ? [user("x")] : target);
        throw new Error(`touched ${String(key)}`);
      },
    });
    const added = renderer.renderExtension({ messages: earlier, tools: [EDIT] }, 40, true);
    expect(added!.ids.length).toBeGreaterThan(0);
  });

  test("tools are shown to the template only where they matter", () => {
    const renderer = tinyCheckpoint(demoChatTemplate).renderer();
    const shown: number[] = [];
    const tools = new Proxy([EDIT], {
      get: (target, key) => {
        if (key === "map") shown.push(1);
        return Reflect.get(target, key);
      },
    });
    renderer.renderExtension({ messages: [user("x")], tools }, 0, true);
    expect(shown).toEqual([]);
    renderer.renderExtension({ messages: [calling('{"old": "a", "new": "b"}'), user("x")], tools }, 0, true);
    expect(shown).not.toEqual([]);
  });
});

describe("history", () => {
  test.each([
    ["append-only", HERMES_TEMPLATE, true, true],
    ["drops earlier thinking", FORGETS_THINKING_TEMPLATE, true, false],
    ["rewrites replies", FORGETFUL_TEMPLATE, false, false],
    ["counts messages", COUNTING_TEMPLATE, false, false],
  ])("%s: what holds is found by rendering", (_, template, isTailStable, isAppendOnly) => {
    const { traits, history } = tinyCheckpoint(template).renderer();
    expect(traits).toMatchObject({ isTailStable, isAppendOnly });
    expect(history).toBe(isTailStable ? "keep" : "branch");
  });

  const thought = conversation(user("a"), reply("b", "why"), user("c"));

  test("keep: the tail the template writes after any reply", () => {
    const { renderer, tokenizer } = tinyCheckpoint(FORGETS_THINKING_TEMPLATE);
    const added = renderer({ history: "keep" }).renderExtension(thought, 2, true);
    expect(tokenizer.decode(added!.ids)).toBe("\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n");
  });

  test.each(["branch", "strip"] as const)("%s: nothing is extended", (history) => {
    const renderer = tinyCheckpoint(FORGETS_THINKING_TEMPLATE).renderer({ history });
    expect(renderer.renderExtension(thought, 2, true)).toBeUndefined();
  });

  test("reasoning in history goes to the template; strip hides it, and says so", () => {
    const { renderer } = tinyCheckpoint(XML_TEMPLATE);
    const branch = renderer({ history: "branch" }).renderWhole(thought);
    expect(branch.text).toContain("<think>\nwhy\n</think>\n\nb");
    expect(branch.notes).toEqual([]);
    const strip = renderer({ history: "strip" }).renderWhole(thought);
    expect(strip.text).not.toContain("why");
    expect(strip.notes).toEqual([{ what: "reasoning-stripped", field: "messages[1]" }]);
  });

  test("keep is refused where what follows a reply depends on what came before it", () => {
    expect(() => tinyCheckpoint(COUNTING_TEMPLATE).renderer({ history: "keep" })).toThrow(
      expect.objectContaining({
        code: "MORTISE_POLICY_UNSUPPORTED",
        detail: { field: "policy.history" },
      }),
    );
  });
});

describe("system messages that do not stand first", () => {
  const early = conversation(system("one"), user("a"), system("two"));
  const late = conversation(system("one"), user("a"), reply("b"), system("two"), user("c"));

  test("before the first reply they join the leading one, under any policy", () => {
    const { renderer } = tinyCheckpoint(HERMES_TEMPLATE);
    for (const lateSystem of ["to-user", "merge-up", "keep"] as const) {
      const { text, notes } = renderer({ lateSystem }).renderWhole(early);
      expect(text).toBe(
        "<|im_start|>system\none\n\ntwo<|im_end|>\n<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n",
      );
      expect(notes).toEqual([{ what: "system-merged-up", field: "messages[2]" }]);
    }
  });

  test("to-user: later ones become user messages, also in an extension", () => {
    const { renderer: make, tokenizer } = tinyCheckpoint(STRICT_SYSTEM_TEMPLATE);
    const renderer = make();
    const note = { what: "system-to-user", field: "messages[3]" };
    const whole = renderer.renderWhole(late);
    const tail = "<|im_start|>user\ntwo<|im_end|>\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n";
    expect(whole.text.endsWith(tail)).toBe(true);
    expect(whole.notes).toEqual([note]);
    const added = renderer.renderExtension(late, 3, true)!;
    expect(tokenizer.decode(added.ids)).toBe(`\n${tail}`);
    expect(added.notes).toEqual([note]);
  });

  test("merge-up: the whole conversation is rendered anew when one arrives", () => {
    const renderer = tinyCheckpoint(STRICT_SYSTEM_TEMPLATE).renderer({ lateSystem: "merge-up" });
    expect(renderer.renderExtension(late, 3, true)).toBeUndefined();
    expect(renderer.renderExtension(late, 4, true)).toBeDefined();
    expect(renderer.renderWhole(late).text).toContain("<|im_start|>system\none\n\ntwo<|im_end|>");
  });

  test("keep: they stay, and are refused for a template that takes none", () => {
    const renderer = tinyCheckpoint(HERMES_TEMPLATE).renderer({ lateSystem: "keep" });
    expect(renderer.renderWhole(late).text).toContain("b<|im_end|>\n<|im_start|>system\ntwo<|im_end|>");
    expect(() => tinyCheckpoint(STRICT_SYSTEM_TEMPLATE).renderer({ lateSystem: "keep" })).toThrow(
      expect.objectContaining({ detail: { field: "policy.lateSystem" } }),
    );
  });
});

describe("thinking", () => {
  test("is the template's switch; a template without one refuses the setting", () => {
    const { renderer } = tinyCheckpoint(FORGETS_THINKING_TEMPLATE);
    const closed = "<think>\n\n</think>\n\n";
    const prompt = (thinking: "template" | "on" | "off") =>
      renderer({ thinking }).renderWhole(conversation(user("a"))).text;
    expect(prompt("template").endsWith("assistant\n")).toBe(true);
    expect(prompt("on")).toBe(prompt("template"));
    expect(prompt("off")).toBe(prompt("on") + closed);
    expect(() => tinyCheckpoint(HERMES_TEMPLATE).renderer({ thinking: "off" })).toThrow(
      expect.objectContaining({ detail: { field: "policy.thinking" } }),
    );
  });

  test("its marks are found, and whether the prompt opens it", () => {
    const marks = { open: "<think>", close: "</think>" };
    const traits = (template: string) => tinyCheckpoint(template).renderer().traits;
    expect(traits(XML_TEMPLATE)).toMatchObject({ reasoning: marks, opensInReasoning: true });
    expect(traits(FORGETS_THINKING_TEMPLATE)).toMatchObject({ reasoning: marks, opensInReasoning: false });
    expect(traits(HERMES_TEMPLATE)).toMatchObject({ reasoning: undefined, opensInReasoning: false });
  });
});

describe("arguments in history", () => {
  test.each([
    ["{broken", '{"arguments": "{broken"}', "{broken"],
    ["3", '{"arguments": "3"}', "3"],
    ['["a"]', '{"arguments": "[\\"a\\"]"}', '["a"]'],
    ["null", '{"arguments": "null"}', "null"],
    ["", "{}", "{}"],
    ['{"old":"é"}', '{"old": "é"}', '{"old": "é"}'],
  ])("%j is rendered, never refused", (given, wrapped, verbatim) => {
    const written = (template: string) =>
      tinyCheckpoint(template)
        .renderer()
        .renderWhole(conversation(user("a"), calling(given), result("c"))).text;
    expect(written(HERMES_TEMPLATE)).toContain(`"arguments": ${wrapped}}`);
    expect(written(FORGETS_THINKING_TEMPLATE)).toContain(`"arguments": ${verbatim}}`);
  });

  test("what a template refuses is the request's fault, with the template's words", () => {
    const renderer = tinyCheckpoint(LLAMA_TEMPLATE).renderer();
    const two = {
      ...calling("{}"),
      toolCalls: [1, 2].map((n) => ({ id: `${n}`, name: "f", arguments: "{}" })),
    };
    expect(() => renderer.renderWhole(conversation(user("a"), two as Message))).toThrow(
      expect.objectContaining({
        code: "MORTISE_PROVIDER_BAD_REQUEST",
        message: expect.stringContaining("one call at a time"),
      }),
    );
  });
});
