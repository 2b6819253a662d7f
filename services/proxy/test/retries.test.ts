/**
 * Retries in every protocol (C6): what harnesses change between two tries does not make another request, and a
 * harness that goes on from an unfinished reply is not kept waiting for its end.
 */
import { Delivery, FinishReason, TurnRelation } from "@mortise/contracts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { call, until } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

let fixture: ProxyFixture;
let replica: Replica;
let engine: ScriptedEngine;
let trial = "";
let token = "";
let count = 0;

beforeAll(async () => {
  fixture = await ProxyFixture.create();
  engine = new ScriptedEngine();
  replica = await fixture.start(() => engine);
  await fixture.publishWeights(0);
});
afterAll(() => fixture.stop());
beforeEach(async () => {
  trial = `r${count++}`;
  token = await openSession(replica, trial);
});

interface Try {
  readonly body: object;
  readonly headers?: Record<string, string>;
}

const user = { role: "user", content: "fix" };
const billing = (nonce: string) => ({ type: "text", text: `x-anthropic-billing-header: v=1.${nonce};` });
const marked = { cache_control: { type: "ephemeral" } };

/** Two tries of one request, as harnesses make them: marks, nonces, limits and forms differ. */
const PROTOCOLS: { path: string; first: Try; second: Try; textOf(json: never): string }[] = [
  {
    path: "/v1/chat/completions",
    first: { body: { messages: [user], stream: true, max_tokens: 100, temperature: 0 } },
    second: {
      body: { messages: [{ role: "user", content: [{ type: "text", text: "fix", ...marked }] }], seed: 2 },
      headers: { "x-stainless-retry-count": "1" },
    },
    textOf: (json: { choices: { message: { content: string } }[] }) => json.choices[0]!.message.content,
  },
  {
    path: "/v1/responses",
    first: { body: { input: "fix", stream: true, prompt_cache_key: "a", client_metadata: { turn: "1" } } },
    second: { body: { input: [{ role: "user", content: [{ type: "input_text", text: "fix" }] }] } },
    textOf: (json: { output: { content: { text: string }[] }[] }) => json.output[0]!.content[0]!.text,
  },
  {
    path: "/v1/messages",
    first: {
      body: {
        max_tokens: 32_000,
        stream: true,
        system: [billing("abc"), { type: "text", text: "edit", ...marked }],
        messages: [{ role: "user", content: [{ type: "text", text: "fix", ...marked }] }],
        metadata: { user_id: "1" },
      },
      headers: { "x-stainless-timeout": "600" },
    },
    second: {
      body: {
        max_tokens: 128_000,
        system: [billing("def"), { type: "text", text: "edit" }],
        messages: [user],
        thinking: { type: "disabled" },
      },
      headers: { "x-stainless-timeout": "300" },
    },
    textOf: (json: { content: { text: string }[] }) => json.content[0]!.text,
  },
];

describe.each(PROTOCOLS)("$path", ({ path, first, second, textOf }) => {
  const ask = (one: Try) => call(replica.modelAddress, { token, path, ...one });

  test("[12] a broken connection does not stop the turn: the retry joins it, whatever volatile differs", async () => {
    const before = engine.requests.length;
    engine.play({ ids: fixture.ids("done ok"), holdAfter: 1 });
    const broken = ask(first);
    await until(() => broken.received() !== "" && engine.held.length === 1);
    broken.request.destroy();
    const retried = await retryOf(() => ask(second));
    engine.held[0]!.release();
    const { status, text } = await retried.done;
    expect(status).toBe(200);
    expect(textOf(JSON.parse(text) as never)).toBe("done ok");
    expect(engine.requests.length).toBe(before + 1);
    expect(await fixture.turns(trial)).toHaveLength(1);
    const { seal } = await replica.rpc.sealSession({ run: RUN, trial });
    expect(seal!.turns.map(({ delivery }) => delivery)).toEqual([Delivery.DELIVERED]);
  });

  test("[18] the same body after a delivered reply is another sample, recorded as a retry", async () => {
    engine.play({ ids: fixture.ids("done") }, { ids: fixture.ids("ok") });
    await ask(first).done;
    expect(textOf(JSON.parse((await ask(second).done).text) as never)).toBe("ok");
    const turns = await fixture.turns(trial);
    expect(turns.map(({ relation }) => relation)).toEqual([TurnRelation.ROOT, TurnRelation.RETRY]);
    expect(turns[1]!.retryOf).toBe(turns[0]!.turn);
  });

  test("[19] identical requests whose connections are both open are two samples", async () => {
    engine.play({ ids: fixture.ids("done"), holdAfter: 1 }, { ids: fixture.ids("ok"), holdAfter: 1 });
    const both = [ask(second), ask(second)];
    await until(() => engine.held.length === 2);
    for (const held of [...engine.held]) held.release();
    const texts = await Promise.all(
      both.map(async (one) => textOf(JSON.parse((await one.done).text) as never)),
    );
    expect(texts.sort()).toEqual(["done", "ok"]);
    expect(await fixture.turns(trial)).toHaveLength(2);
  });
});

test("[17] the same body of two agents is two calls: neither gets the other's reply", async () => {
  const ask = (agent: string) =>
    call(replica.modelAddress, {
      token,
      path: "/v1/messages",
      headers: {
        "user-agent": "claude-cli/2.1.332 (external, sdk-cli)",
        "x-claude-code-session-id": "s",
        "x-claude-code-agent-id": agent,
      },
      body: { max_tokens: 9, messages: [user], stream: true },
    });
  engine.play({ ids: fixture.ids("done"), holdAfter: 1 }, { ids: fixture.ids("ok") });
  const broken = ask("one");
  await until(() => broken.received() !== "" && engine.held.length === 1);
  broken.request.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect((await ask("two").done).text).toContain('"ok"');
  engine.held[0]!.release();
  await until(async () => (await fixture.turns(trial)).length === 2);
  const turns = await fixture.turns(trial);
  expect(new Set(turns.map(({ thread }) => thread)).size).toBe(2);
});

test("a harness that goes on from an unfinished reply ends it, and its turn is attached to what there is", async () => {
  const tools = [
    { type: "function", function: { name: "edit", parameters: { type: "object", properties: {} } } },
  ];
  const one = fixture.ids("<tool_call>edit</tool_call>", { ends: false });
  const ids = [...one, ...fixture.ids("<tool_call>edit</tool_call>")];
  engine.play({ ids, holdAfter: one.length }, { ids: fixture.ids("done") });
  const broken = call(replica.modelAddress, { token, body: { messages: [user], tools, stream: true } });
  await until(() => /"arguments"/.test(broken.received()) && engine.held.length === 1);
  const id = /"id":"(call_[^"]+)"/.exec(broken.received())![1]!;
  broken.request.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));
  const echo = {
    role: "assistant",
    content: null,
    tool_calls: [{ id, type: "function", function: { name: "edit", arguments: "{}" } }],
  };
  const messages = [user, echo, { role: "tool", tool_call_id: id, content: "ok" }];
  const { status } = await call(replica.modelAddress, { token, body: { messages, tools } }).done;
  expect(status).toBe(200);
  const turns = await fixture.turns(trial);
  expect(turns.map(({ finish }) => finish)).toEqual([FinishReason.ABORT, FinishReason.STOP]);
  expect(turns[1]).toMatchObject({ parent: turns[0]!.turn, relation: TurnRelation.EXTENDS });
  const context = turns[0]!.prefixLength + turns[0]!.suffixIds.length / 4;
  expect(turns[1]!.prefixLength).toBe(context + one.length);
});

/** The first try's connection is known to be gone a moment after it is cut. */
async function retryOf(ask: () => ReturnType<typeof call>) {
  await new Promise((resolve) => setTimeout(resolve, 50));
  return ask();
}
