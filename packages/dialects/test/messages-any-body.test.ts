/** Whatever JSON arrives, it is a request or a refusal that names a field. */
import { digestRequest } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { messagesDialect } from "../src/index.js";

// Drawing bodies takes its time where other work has the cores.
vi.setConfig({ testTimeout: 180_000 });

const noise = fc.jsonValue({ maxDepth: 1 });

/** A value that is mostly what the protocol has in this place, and sometimes any JSON. */
const mostly = <T>(likely: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 12, arbitrary: likely as fc.Arbitrary<unknown> }, { weight: 1, arbitrary: noise });

const word = fc.constantFrom(
  "",
  "a",
  "f",
  "text",
  "x-anthropic-billing-header: c",
  "__proto__",
  "constructor",
);
const type = fc.constantFrom(
  ...["text", "image", "document", "search_result", "tool_use", "tool_result", "tool_reference"],
  ...["thinking", "redacted_thinking", "server_tool_use", "custom", "content", "toString", ""],
);

const { content } = fc.letrec<{ block: unknown; content: unknown }>((tie) => ({
  block: mostly(
    fc.record(
      {
        type: mostly(type),
        text: mostly(word),
        thinking: mostly(word),
        id: mostly(word),
        tool_use_id: mostly(word),
        name: mostly(word),
        tool_name: mostly(word),
        is_error: mostly(fc.boolean()),
        input: mostly(
          fc.oneof(
            fc.dictionary(word, noise, { maxKeys: 3 }),
            fc.record({ __unparsedToolInput: mostly(fc.record({ raw: mostly(word), len: fc.nat() })) }),
          ),
        ),
        source: mostly(
          fc.record(
            { type: mostly(type), data: mostly(word), content: tie("content") },
            { requiredKeys: [] },
          ),
        ),
        content: tie("content"),
      },
      { requiredKeys: ["type", "text", "id", "tool_use_id", "name"] },
    ),
  ),
  content: mostly(fc.oneof({ depthSize: "small" }, word, fc.array(tie("block"), { maxLength: 3 }))),
}));

const message = mostly(
  fc.record(
    { role: mostly(fc.constantFrom("user", "assistant", "system")), content },
    { requiredKeys: ["role"] },
  ),
);
const tool = mostly(
  fc.record(
    {
      type: mostly(fc.constantFrom("custom", "web_search_20250305")),
      name: mostly(word),
      description: mostly(word),
      input_schema: mostly(fc.dictionary(word, noise, { maxKeys: 3 })),
      defer_loading: mostly(fc.boolean()),
    },
    { requiredKeys: ["name"] },
  ),
);
const body = mostly(
  fc.record(
    {
      model: mostly(word),
      system: content,
      messages: mostly(fc.array(message, { minLength: 1, maxLength: 4 })),
      tools: mostly(fc.array(tool, { maxLength: 3 })),
      tool_choice: mostly(
        fc.record({ type: mostly(fc.constantFrom("auto", "any", "tool", "none")), name: word }),
      ),
      thinking: mostly(fc.record({ type: mostly(fc.constantFrom("adaptive", "enabled", "disabled")) })),
      stop_sequences: mostly(fc.array(mostly(word), { maxLength: 2 })),
      max_tokens: mostly(fc.double()),
      temperature: mostly(fc.double()),
      stream: mostly(fc.boolean()),
    },
    { requiredKeys: ["messages"] },
  ),
);

/** Whether it was read; a refusal must be the protocol's, name a field, and be answerable. */
function isRead(value: unknown): boolean {
  try {
    const request = messagesDialect.read(value);
    // What is read can be compared and kept.
    digestRequest(request.conversation, request.toolChoice);
    expect(request.conversation.messages.length).toBeGreaterThan(0);
    return true;
  } catch (error) {
    if (!(error instanceof MortiseError)) throw error;
    expect(error.code).toBe("MORTISE_PROVIDER_BAD_REQUEST");
    expect(error.detail.field).toEqual(expect.stringMatching(/./));
    expect(messagesDialect.refuse(error, "r").status).toBe(400);
    return false;
  }
}

test("[57] any JSON is read or refused by the name of a field", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      isRead(value);
    }),
    { numRuns: 1000 },
  );
});

test("[57] bodies that are nearly right are read or refused by the name of a field", () => {
  let read = 0;
  fc.assert(
    fc.property(body, (value) => {
      if (isRead(value)) read++;
    }),
    { numRuns: 2000 },
  );
  // Both outcomes were seen, or the property says little.
  expect(read).toBeGreaterThan(100);
  expect(read).toBeLessThan(1900);
});
