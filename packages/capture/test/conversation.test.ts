/** Normalisation, digests and packed bytes: what may differ between requests, and what may not. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Conversation,
  digestRequest,
  type Message,
  normaliseConversation,
  normaliseText,
  packIds,
  packLogProbabilities,
  unpackIds,
  unpackLogProbabilities,
} from "../src/index.js";

const user = (text: string): Message => ({ role: "user", text });
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
const body = (conversation: Conversation, choice?: unknown) => hex(digestRequest(conversation, choice).body);

test("strings and text parts are equal, volatile header blocks vanish", () => {
  expect(normaliseText([{ text: "a" }, { text: "b" }])).toBe(normaliseText("ab"));
  expect(normaliseText([{ text: "x-anthropic-billing-header: cc=1;" }, { text: "b" }])).toBe("b");
  expect(normaliseText(null)).toBe("");
});

test("tool results are put in the order of the calls", () => {
  const calls = ["a", "b", "c"].map((id) => ({ id, name: "f", arguments: "{}" }));
  const result = (id: string): Message => ({ role: "tool", text: id, toolCallId: id });
  const conversation = (order: string[]): Conversation => ({
    messages: [user("x"), { role: "assistant", text: "", toolCalls: calls }, ...order.map(result), user("y")],
    tools: [],
  });
  const sorted = normaliseConversation(conversation(["c", "a", "b"]));
  expect(sorted).toEqual(conversation(["a", "b", "c"]));
  expect(normaliseConversation(conversation(["z", "c", "a"]))).toEqual(conversation(["a", "c", "z"]));
});

test("digests depend on roles, texts, ids, tools and tool choice, not on key order", () => {
  const base: Conversation = {
    messages: [user("x")],
    tools: [{ name: "f", description: "d", parameters: { a: 1, b: { c: 2, d: 3 } } }],
  };
  const reordered = { ...base, tools: [{ ...base.tools[0]!, parameters: { b: { d: 3, c: 2 }, a: 1 } }] };
  expect(body(reordered)).toBe(body(base));
  expect(body({ ...base, messages: [{ role: "system", text: "x" }] })).not.toBe(body(base));
  expect(body({ ...base, tools: [] })).not.toBe(body(base));
  expect(body(base, "none")).not.toBe(body(base));
  expect(body({ ...base, messages: [user("x"), user("")] })).not.toBe(body(base));
});

test("packed values survive any alignment", () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), fc.integer({ min: 0, max: 3 }), (ids, shift) => {
      const packed = packIds(ids);
      const shifted = new Uint8Array(packed.length + shift);
      shifted.set(packed, shift);
      expect([...unpackIds(shifted.subarray(shift))]).toEqual(ids);
    }),
  );
  expect([...packIds([1, 256])]).toEqual([1, 0, 0, 0, 0, 1, 0, 0]);
  expect([...unpackLogProbabilities(packLogProbabilities([-0.5, Number.NaN]))]).toEqual([-0.5, Number.NaN]);
  expect(() => unpackIds(new Uint8Array(3))).toThrow(/not a multiple of 4/);
});
