/** Session budgets: what ends a trial, in the words of its harness, named in the seal, whatever restarts. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { call, joinStream } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

const user = { role: "user", content: "fix" };
const EDIT = { type: "function", function: { name: "edit", parameters: { type: "object", properties: {} } } };
const CALL = "<tool_call>edit</tool_call>";

let fixture: ProxyFixture;
let replica: Replica;
let engine: ScriptedEngine;
let trial = "";
let count = 0;

beforeAll(async () => {
  fixture = await ProxyFixture.create();
  engine = new ScriptedEngine();
  replica = await fixture.start(() => engine);
  await fixture.publishWeights(0);
});
afterAll(() => fixture.stop());
beforeEach(() => {
  trial = `b${count++}`;
});

const ask = (token: string, body: object = { messages: [user] }, at = replica) =>
  call(at.modelAddress, { token, body }).done;
const reached = async () => (await replica.rpc.sealSession({ run: RUN, trial })).seal!.budgetReached;

/** A conversation that grows: whatever the policy says is sent back. */
class Conversation {
  private readonly messages: object[] = [user];

  constructor(private readonly token: string) {}

  async turn(says: string): Promise<number> {
    engine.play({ ids: fixture.ids(says) });
    return this.next();
  }

  async next(): Promise<number> {
    const { status, text } = await ask(this.token, { messages: this.messages, tools: [EDIT] });
    if (status !== 200) return status;
    const { message } = JSON.parse(text).choices[0];
    this.messages.push(message);
    for (const one of message.tool_calls ?? [])
      this.messages.push({ role: "tool", tool_call_id: one.id, content: "ok" });
    if (!message.tool_calls) this.messages.push({ role: "user", content: "go on" });
    return status;
  }
}

describe("each budget ends the trial and is named in the seal", () => {
  test("turns", async () => {
    const token = await openSession(replica, trial, { budget: { turns: 2 } });
    for (const text of ["done", "ok"]) {
      engine.play({ ids: fixture.ids(text) });
      expect((await ask(token)).status).toBe(200);
    }
    expect((await ask(token)).status).toBe(403);
    expect(await reached()).toBe("turns");
  });

  test("prompt tokens, as the sum of what was sent", async () => {
    engine.play({ ids: fixture.ids("done") });
    const probe = JSON.parse((await ask(await openSession(replica, trial))).text).usage.prompt_tokens;
    trial = `${trial}-limited`;
    const token = await openSession(replica, trial, { budget: { promptTokens: BigInt(2 * probe) } });
    for (const text of ["done", "ok"]) {
      engine.play({ ids: fixture.ids(text) });
      expect((await ask(token)).status).toBe(200);
    }
    expect((await ask(token)).status).toBe(403);
    expect(await reached()).toBe("prompt_tokens");
  });

  test("response tokens: the last turn gets what is left", async () => {
    const token = await openSession(replica, trial, { budget: { responseTokens: 3n } });
    engine.play({ ids: fixture.ids("done ok done") });
    expect(JSON.parse((await ask(token)).text).usage.completion_tokens).toBe(3);
    expect((await ask(token)).status).toBe(403);
    expect(await reached()).toBe("response_tokens");
  });

  test("turns in a row without a tool call; a call starts the count again", async () => {
    const token = await openSession(replica, trial, { budget: { turnsWithoutCall: 2 } });
    const talk = new Conversation(token);
    for (const says of ["done", CALL, "done", "ok"]) expect(await talk.turn(says)).toBe(200);
    expect(await talk.next()).toBe(403);
    expect(await reached()).toBe("turns_without_call");
  });

  test("wall clock, from the first call on", async () => {
    const token = await openSession(replica, trial, { budget: { wallClockMs: 1 } });
    engine.play({ ids: fixture.ids("done") });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await ask(token)).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await ask(token)).status).toBe(403);
    expect(await reached()).toBe("wall_clock");
  });
});

test("a spent budget is no error to retry, in a protocol's own shape", async () => {
  const token = await openSession(replica, trial, { budget: { turns: 1 } });
  engine.play({ ids: fixture.ids("done") });
  await ask(token);
  const answers = await Promise.all(
    [
      { path: "/v1/chat/completions", body: { messages: [user] } },
      { path: "/v1/responses", body: { input: "fix" } },
      { path: "/v1/messages", body: { max_tokens: 9, messages: [user] } },
    ].map((one) => call(replica.modelAddress, { token, ...one }).done),
  );
  expect(answers.map(({ status }) => status)).toEqual([403, 400, 403]);
  for (const { headers } of answers) expect(headers["x-should-retry"]).toBe("false");
});

test("a turn of which nothing was captured is given back", async () => {
  const token = await openSession(replica, trial, { budget: { turns: 1 } });
  engine.play({ ids: fixture.ids("done"), failAfter: 0 });
  expect((await ask(token)).status).toBe(503);
  engine.play({ ids: fixture.ids("done") });
  expect((await ask(token)).status).toBe(200);
  expect((await ask(token)).status).toBe(403);
});

test("another replica gives nothing back: turns, tokens, calls and time are read from the journal", async () => {
  const limits = { turns: 2, responseTokens: 100n, promptTokens: 10_000n, turnsWithoutCall: 2 };
  const token = await openSession(replica, trial, { budget: limits });
  const talk = new Conversation(token);
  expect(await talk.turn("done")).toBe(200);
  expect(await talk.turn("ok")).toBe(200);
  const second = new ScriptedEngine();
  const after = await fixture.start(() => second);
  const refused = await ask(token, { messages: [{ role: "user", content: "new" }] }, after);
  expect(refused.status).toBe(403);
  expect(JSON.parse(refused.text).error.param).toBe("turns");

  const timed = `${trial}-time`;
  const early = await openSession(replica, timed, { budget: { wallClockMs: 1 } });
  engine.play({ ids: fixture.ids("done") });
  await ask(early);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(JSON.parse((await ask(early, { messages: [user, user] }, after)).text).error.param).toBe(
    "wall_clock",
  );
});

test("a stream that was begun is never ended by a budget", async () => {
  const token = await openSession(replica, trial, { budget: { turns: 1, responseTokens: 2n } });
  engine.play({ ids: fixture.ids("done ok done") });
  const { text } = await ask(token, { messages: [user], stream: true });
  expect(joinStream(text)).toMatchObject({ finish: "length", isDone: true });
});
