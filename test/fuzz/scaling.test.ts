/**
 * No request costs more than in proportion to its size: for families of bodies that repeat one thing n times,
 * twice the n takes about twice the steps. A sandbox chooses its bodies, and a proxy is shared.
 */
import { digestRequest } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import { chatDialect, type Dialect, messagesDialect, responsesDialect } from "@mortise/dialects";
import { afterAll, expect, test } from "vitest";
import { StepCounter } from "./counted.js";

const counter = new StepCounter();
afterAll(() => counter.close());

const many = <T>(n: number, make: (at: number) => T): T[] => Array.from({ length: n }, (_, at) => make(at));
const user = { role: "user", content: "x" };
const call = (id: string) => ({ id, type: "function", function: { name: "f", arguments: "{}" } });
const toolUse = (id: string) => ({ type: "tool_use", id, name: "f", input: {} });
const tool = { type: "function", name: "f", parameters: {} };

/** Name, protocol, body of size n. */
const FAMILIES: readonly [name: string, dialect: Dialect, body: (n: number) => object][] = [
  ["messages", chatDialect, (n) => ({ messages: many(n, () => user) })],
  [
    "parts of text",
    chatDialect,
    (n) => ({ messages: [{ role: "user", content: many(n, () => ({ type: "text", text: "x" })) }] }),
  ],
  [
    "calls in one message",
    chatDialect,
    (n) => ({ messages: [user, { role: "assistant", tool_calls: many(n, (at) => call(`c${at}`)) }] }),
  ],
  [
    "results of parallel calls, reversed",
    chatDialect,
    (n) => ({
      messages: [
        user,
        { role: "assistant", tool_calls: many(n, (at) => call(`c${at}`)) },
        ...many(n, (at) => ({ role: "tool", tool_call_id: `c${n - at}`, content: "x" })),
      ],
    }),
  ],
  [
    "tools of one name",
    chatDialect,
    (n) => ({ messages: [user], tools: many(n, () => ({ type: "function", function: { name: "f" } })) }),
  ],
  ["messages", messagesDialect, (n) => ({ messages: many(n, () => user) })],
  [
    "assistant messages in a row",
    messagesDialect,
    (n) => ({ messages: [user, ...many(n, (at) => ({ role: "assistant", content: [toolUse(`c${at}`)] }))] }),
  ],
  [
    "results of parallel calls, reversed",
    messagesDialect,
    (n) => ({
      messages: [
        user,
        { role: "assistant", content: many(n, (at) => toolUse(`c${at}`)) },
        {
          role: "user",
          content: many(n, (at) => ({ type: "tool_result", tool_use_id: `c${n - at}`, content: "x" })),
        },
      ],
    }),
  ],
  [
    "system messages",
    messagesDialect,
    (n) => ({ messages: [user, ...many(n, () => ({ role: "system", content: "x" }))] }),
  ],
  [
    "tools of one name",
    messagesDialect,
    (n) => ({ messages: [user], tools: many(n, () => ({ name: "f", input_schema: {} })) }),
  ],
  ["items", responsesDialect, (n) => ({ input: many(n, () => ({ ...user, type: "message" })) })],
  [
    "calls in a row",
    responsesDialect,
    (n) => ({
      input: [
        user,
        ...many(n, (at) => ({ type: "function_call", call_id: `c${at}`, name: "f", arguments: "{}" })),
      ],
    }),
  ],
  ["tools of one name", responsesDialect, (n) => ({ input: [user], tools: many(n, () => tool) })],
  [
    "namespaces, and calls into them",
    responsesDialect,
    (n) => ({
      input: [
        user,
        ...many(n, (at) => ({
          type: "function_call",
          call_id: `c${at}`,
          name: "f",
          namespace: `n${at}`,
          arguments: "{}",
        })),
      ],
      tools: many(n, (at) => ({ type: "namespace", name: `n${at}`, tools: [tool] })),
    }),
  ],
  [
    "system items",
    responsesDialect,
    (n) => ({ input: [...many(n, () => ({ role: "system", content: "x" })), user] }),
  ],
];

/** Large enough that what is fixed does not hide what grows. */
const SIZE = 400;
/** Between 2, in proportion, and 4, by the square; sorting adds a little to 2. */
const RATIO_MAX = 2.6;

test.for(FAMILIES)("%s: the cost of reading grows with the body", ([, dialect, body]) => {
  const cost = (n: number) => {
    const text = JSON.stringify(body(n));
    return counter.count(() => readAndDigest(dialect, text));
  };
  cost(SIZE);
  const [once, twice] = [cost(SIZE), cost(2 * SIZE)];
  expect(twice / once, `${once} and ${twice} steps`).toBeLessThan(RATIO_MAX);
});

function readAndDigest(dialect: Dialect, text: string): void {
  try {
    const { conversation, toolChoice } = dialect.read(JSON.parse(text));
    digestRequest(conversation, toolChoice);
  } catch (error) {
    if (!(error instanceof MortiseError)) throw error;
  }
}
