/** Digests of a request that mostly repeats earlier ones are those of the request alone. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Conversation,
  DigestMemory,
  digestRequest,
  type Message,
  type ToolSchema,
} from "../src/index.js";

const text = fc.constantFrom("", "a", "b", " a ", "é", "a\n", "long ".repeat(40));
const call = fc.record({
  id: fc.constantFrom("c1", "c2", "c1|x"),
  name: fc.constantFrom("f", "g"),
  arguments: fc.constantFrom("{}", '{"a":1}', "{"),
});
const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({ role: fc.constantFrom("system" as const, "user" as const), text }),
  fc.record({ role: fc.constant("tool" as const), text, toolCallId: fc.constantFrom("c1", "c2", "c2|y") }),
  fc.record({
    role: fc.constant("assistant" as const),
    text,
    reasoning: text,
    toolCalls: fc.array(call, { maxLength: 2 }),
  }),
);
const tools: fc.Arbitrary<ToolSchema[]> = fc.array(
  fc.record({
    name: text,
    description: text,
    parameters: fc.constantFrom(null, { a: 1, b: 2 }, { b: 2, a: 1 }),
  }),
  { maxLength: 2 },
);

/** What the next request does to an earlier one: goes on from it, is cut back and goes on, changes one message. */
const step = fc.record({
  from: fc.nat(5),
  keep: fc.nat(12),
  added: fc.array(message, { maxLength: 4 }),
  changed: fc.option(fc.record({ at: fc.nat(8), to: message }), { nil: undefined }),
  tools,
  choice: fc.constantFrom(null, "none"),
  caller: fc.constantFrom("", "agent"),
});

test("equal those of the request alone, whatever came before", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const memory = new DigestMemory();
      const earlier: Conversation[] = [];
      for (const { from, keep, added, changed, choice, caller, ...one } of steps) {
        const base = earlier.at(-1 - from)?.messages ?? [];
        const messages = [...base.slice(0, keep), ...added];
        if (changed && changed.at < messages.length) messages[changed.at] = changed.to;
        const conversation = structuredClone({ messages, tools: one.tools });
        earlier.push(conversation);
        const [digests, expected] = [
          memory.digest(conversation, choice, caller),
          digestRequest(conversation, choice, caller),
        ];
        expect({ ...digests, history: undefined }).toEqual({ ...expected, history: undefined });
        for (let count = 0; count <= messages.length; count++)
          expect(digests.history.before(count)).toEqual(expected.history.before(count));
      }
    }),
  );
});

test("a history longer than is remembered is digested all the same", () => {
  const memory = new DigestMemory();
  const long: Message[] = Array.from({ length: 3 }, (_, at) => ({
    role: "user",
    text: `${at}`.repeat(1_000_000),
  }));
  for (const count of [1, 2, 3, 2]) {
    const conversation = { messages: long.slice(0, count), tools: [] };
    expect(memory.digest(conversation).body).toEqual(digestRequest(conversation).body);
  }
});
