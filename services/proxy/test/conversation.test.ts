/** Whole conversations over real sockets with a scripted engine: streaming, tools, exact contexts, sampling. */

import { assembleTrial, unpackIds, unpackLogProbabilities } from "@mortise/capture";
import { FinishReason, TurnRelation, TurnRole } from "@mortise/contracts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { call, events, joinStream, until } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

const EDIT = {
  type: "function",
  function: {
    name: "edit",
    parameters: { type: "object", properties: { old: { type: "string" }, new: { type: "string" } } },
  },
};
const user = { role: "user", content: "fix the sum" };

let fixture: ProxyFixture;
let replica: Replica;
let engine: ScriptedEngine;
let trial = "";
let count = 0;

beforeAll(async () => {
  fixture = await ProxyFixture.create({ maxPositions: 300 });
  engine = new ScriptedEngine();
  replica = await fixture.start(() => engine);
  await fixture.publishWeights(0);
});
afterAll(() => fixture.stop());
beforeEach(() => {
  trial = `t${count++}`;
});

async function ask(body: object, token: string) {
  const answer = await call(replica.modelAddress, { token, body }).done;
  return { ...answer, json: answer.text.startsWith("{") ? JSON.parse(answer.text) : undefined };
}

test("a reply that goes round in circles is noted in its turn and counted", async () => {
  const token = await openSession(replica, trial, { sampling: { maxTokens: 200 } });
  engine.play({ ids: fixture.ids("x".repeat(140)) }, { ids: fixture.ids("done") });
  await ask({ messages: [user] }, token);
  await ask({ messages: [user, user] }, token);
  const turns = await fixture.turns(trial);
  const note = { what: "repeats-itself", field: "reply" };
  expect(turns.map(({ audit }) => audit.map(({ what, field }) => ({ what, field })))).toEqual([[note], []]);
  expect(await replica.metrics.render()).toContain("mortise_proxy_endless_turns_total 1");
});

describe("a conversation", () => {
  test("two turns with a tool: rendered once, extended by what is new, sealed as one row", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("<tool_call>edit x => y</tool_call>") }, { ids: fixture.ids("done") });
    const first = await ask({ messages: [user], tools: [EDIT] }, token);
    expect(first.status).toBe(200);
    const { message, finish_reason } = first.json.choices[0];
    expect(finish_reason).toBe("tool_calls");
    expect(message.content).toBeNull();
    expect(message.tool_calls[0].function).toEqual({ name: "edit", arguments: '{"old":"x","new":"y"}' });

    const toolResult = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "ok" };
    const second = await ask({ messages: [user, message, toolResult], tools: [EDIT] }, token);
    expect(second.json.choices[0].message.content).toBe("done");
    const whole =
      "<|im_start|>user\nfix the sum<|im_end|>\n<|im_start|>assistant\n" +
      "<tool_call>edit x => y</tool_call><|im_end|>\n<|im_start|>tool\nok<|im_end|>\n<|im_start|>assistant\n";
    expect([...engine.requests.at(-1)!.contextIds]).toEqual([...fixture.tokenizer.encode(whole)]);

    const [one, two] = await fixture.turns(trial);
    expect(one).toMatchObject({
      relation: TurnRelation.ROOT,
      role: TurnRole.TRAIN,
      finish: FinishReason.STOP,
    });
    expect(two).toMatchObject({ relation: TurnRelation.EXTENDS, parent: one!.turn });
    expect(two!.prefixLength + two!.suffixIds.length / 4).toBe(engine.requests.at(-1)!.contextIds.length);
    const glue = fixture.tokenizer.encode("\n<|im_start|>tool\nok<|im_end|>\n<|im_start|>assistant\n");
    expect([...unpackIds(two!.suffixIds)]).toEqual([...glue]);

    const { seal } = await replica.rpc.sealSession({ run: RUN, trial });
    const rows = assembleTrial([one!, two!], seal!).sequences;
    expect(rows).toHaveLength(1);
    expect(rows[0]!.mask.reduce((sum, bit) => sum + bit, 0)).toBe(Number(seal!.sampledTokens));
  });

  test("streams deltas while the engine samples; the end waits for the journal (C3, C7)", async () => {
    const token = await openSession(replica, trial);
    const ids = fixture.ids("done ok done");
    engine.play({ ids, holdAfter: 3 });
    const open = call(replica.modelAddress, {
      token,
      body: { messages: [user], stream: true, stream_options: { include_usage: true } },
    });
    const response = await open.opened;
    expect(response.headers["content-type"]).toBe("text/event-stream");
    await until(() => joinStream(open.received()).content.length > 0);
    expect(joinStream(open.received())).toMatchObject({ isDone: false, finish: undefined });
    expect(await fixture.turns(trial)).toHaveLength(0);
    engine.held[0]!.release();
    const reply = joinStream((await open.done).text);
    expect(await fixture.turns(trial)).toHaveLength(1);
    expect(reply).toMatchObject({ content: "done ok done", finish: "stop", isDone: true });
    expect(reply.usage).toMatchObject({ completion_tokens: ids.length });
  });

  test("streams a tool call with its own index and id", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("fix <tool_call>edit x => y</tool_call>") });
    const { text } = await ask({ messages: [user], tools: [EDIT], stream: true }, token);
    const reply = joinStream(text);
    expect(reply).toMatchObject({ content: "fix ", names: ["edit"], finish: "tool_calls", isDone: true });
    expect(JSON.parse(reply.arguments)).toEqual({ old: "x", new: "y" });
    const [turn] = await fixture.turns(trial);
    expect(reply.callIds).toEqual(turn!.toolCalls.map((one) => one.id));
    expect(turn!.toolCalls[0]!.tokenEnd).toBe(
      fixture.ids("fix <tool_call>edit x => y</tool_call>").length - 1,
    );
  });

  test("an adopted partial ends the context at the last echoed call (C4)", async () => {
    const token = await openSession(replica, trial);
    const call1 = "<tool_call>edit x => y</tool_call>";
    engine.play({ ids: fixture.ids(call1 + call1.replace("x", "s")) }, { ids: fixture.ids("done") });
    const { message } = (await ask({ messages: [user], tools: [EDIT] }, token)).json.choices[0];
    expect(message.tool_calls).toHaveLength(2);
    const kept = { ...message, tool_calls: message.tool_calls.slice(0, 1) };
    const result = { role: "tool", tool_call_id: kept.tool_calls[0].id, content: "ok" };
    await ask({ messages: [user, kept, result], tools: [EDIT] }, token);
    const whole =
      `<|im_start|>user\nfix the sum<|im_end|>\n<|im_start|>assistant\n${call1}<|im_end|>` +
      "\n<|im_start|>tool\nok<|im_end|>\n<|im_start|>assistant\n";
    expect([...engine.requests.at(-1)!.contextIds]).toEqual([...fixture.tokenizer.encode(whole)]);
  });

  test("a malformed call stays text and is captured", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("<tool_call>edit</tool_call> <tool_call>nosuch x => y</tool_call>") });
    const { json } = await ask(
      {
        messages: [user],
        tools: [
          {
            ...EDIT,
            function: { ...EDIT.function, parameters: { ...EDIT.function.parameters, required: ["old"] } },
          },
        ],
      },
      token,
    );
    expect(json.choices[0].message.content).toBe(
      "<tool_call>edit</tool_call> <tool_call>nosuch x => y</tool_call>",
    );
    expect(json.choices[0].finish_reason).toBe("stop");
    expect(await fixture.turns(trial)).toHaveLength(1);
  });

  test("a reply cut by the length limit says so, and the next turn closes it as context", async () => {
    const token = await openSession(replica, trial, { sampling: { maxTokens: 2 } });
    engine.play({ ids: fixture.ids("done ok done") }, { ids: fixture.ids("done") });
    const first = await ask({ messages: [user] }, token);
    expect(first.json.choices[0].finish_reason).toBe("length");
    const { message } = first.json.choices[0];
    await ask({ messages: [user, message, { role: "user", content: "ok" }] }, token);
    const [, two] = await fixture.turns(trial);
    const suffix = fixture.tokenizer.encode(
      "<|im_end|>\n<|im_start|>user\nok<|im_end|>\n<|im_start|>assistant\n",
    );
    expect([...unpackIds(two!.suffixIds)]).toEqual([...suffix]);
  });

  test("the policy decides sampling; what was asked for is recorded (C8)", async () => {
    const token = await openSession(replica, trial, { sampling: { temperature: 0.5 } });
    engine.play({ ids: fixture.ids("done") });
    await ask({ messages: [user], temperature: 0, top_p: 0.1, max_tokens: 3 }, token);
    expect(engine.requests.at(-1)).toMatchObject({
      temperature: 0.5,
      maxTokens: 64,
      rngKey: `1/task/${trial}`,
    });
    const [turn] = await fixture.turns(trial);
    expect(turn!.requestedSampling).toMatchObject({ temperature: 0, topP: 0.1, maxTokens: 3 });
    expect(turn!.appliedSampling).toMatchObject({ temperature: 0.5, maxTokens: 64 });
    const logps = unpackLogProbabilities(turn!.logProbabilities);
    expect([...logps]).toEqual(Array.from(logps, (_, at) => Math.fround(-at / 100)));
  });

  test("a request longer than the context is refused before it is streamed, in words harnesses know", async () => {
    const token = await openSession(replica, trial);
    const { status, json } = await ask(
      { messages: [{ role: "user", content: "#".repeat(400) }], stream: true },
      token,
    );
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ code: "context_length_exceeded" });
    expect(json.error.message).toMatch(/maximum context length is 300 tokens/);
  });

  test.each([
    [{ messages: "x" }, "messages"],
    [{ messages: [{ role: "robot", content: "x" }] }, "messages[0].role"],
    [{ messages: [{ role: "user", content: [{ type: "text" }] }] }, "messages[0].content[0].text"],
    [{ messages: [user], n: 2 }, "n"],
    [{ messages: [user], stop: [1] }, "stop[0]"],
    [{ messages: [user], tools: [{}] }, "tools[0].function"],
  ])("names the field of a malformed request", async (body, field) => {
    const { status, json } = await ask(body, await openSession(replica, trial));
    expect(status).toBe(400);
    expect(json.error.param).toBe(field);
  });

  test("a body that is not JSON and a body above the limit are refused", async () => {
    const token = await openSession(replica, trial);
    expect((await call(replica.modelAddress, { token, raw: "{" }).done).status).toBe(400);
    const large = call(replica.modelAddress, { token, raw: "x".repeat(33 * 1024 * 1024) });
    expect((await large.opened).statusCode).toBe(413);
  });

  test("a body nested without end is refused for good, not asked for again", async () => {
    const nested = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const raw = `{"messages":[{"role":"user","content":"fix"}],"tool_choice":${nested}}`;
    const token = await openSession(replica, trial);
    expect((await call(replica.modelAddress, { token, raw }).done).status).toBe(400);
  });

  test("numbers no record can hold cost no turn: saturated when whole, refused when not finite", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("done") });
    expect((await ask({ messages: [user], max_tokens: 1e15, top_k: 1e15 }, token)).status).toBe(200);
    const [turn] = await fixture.turns(trial);
    expect(turn!.requestedSampling).toMatchObject({ maxTokens: 2 ** 31 - 1, topK: 2 ** 31 - 1 });
    const raw = '{"messages":[{"role":"user","content":"fix"}],"temperature":1e999}';
    const refused = await call(replica.modelAddress, { token, raw }).done;
    expect(refused.status).toBe(400);
    expect(JSON.parse(refused.text).error.param).toBe("temperature");
  });

  test("models are listed, and an alias is echoed", async () => {
    const token = await openSession(replica, trial);
    const list = await call(replica.modelAddress, { token, path: "/v1/models", method: "GET" }).done;
    expect(JSON.parse(list.text).data[0].id).toBe("policy");
    const damaged = call(replica.modelAddress, { token, path: "/v1/models/%E0%A4%A", method: "GET" });
    expect((await damaged.done).status).toBe(400);
    engine.play({ ids: fixture.ids("done") });
    expect((await ask({ model: "gpt-x", messages: [user] }, token)).json.model).toBe("gpt-x");
  });

  test("a thread without tools beside an agent is captured and not trained", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("done") }, { ids: fixture.ids("ok") });
    await ask({ messages: [user], tools: [EDIT] }, token);
    await ask({ messages: [{ role: "user", content: "title" }] }, token);
    const [agent, title] = await fixture.turns(trial);
    expect(title).toMatchObject({
      relation: TurnRelation.AUXILIARY,
      role: TurnRole.EXCLUDED,
      thread: agent!.thread,
    });
  });

  test("events are complete JSON, one finish, then [DONE]", async () => {
    const token = await openSession(replica, trial);
    engine.play({ ids: fixture.ids("done") });
    const { text } = await ask({ messages: [user], stream: true }, token);
    const data = events(text);
    expect(data.at(-1)).toBe("[DONE]");
    expect(data.slice(0, -1).filter((one) => JSON.parse(one).choices[0].finish_reason !== null)).toHaveLength(
      1,
    );
  });
});
