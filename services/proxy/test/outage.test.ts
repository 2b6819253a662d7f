/**
 * NATS goes away while turns are sampled: killed and started again on its store, or stopped where it stands.
 * Sampled turns wait in a bounded spool; beyond it calls are told to come again; nothing is lost or doubled.
 */
import { ManualClock } from "@mortise/kernel";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Answer, call, joinStream, until } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

const SPOOL_TURNS = 3;
const EDIT = { type: "function", function: { name: "edit", parameters: { type: "object", properties: {} } } };
const CALL = "<tool_call>edit</tool_call>";
const user = { role: "user", content: "fix" };

// Servers that stop and start take their share of a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let fixture: ProxyFixture;
let replica: Replica;
let engine: ScriptedEngine;

beforeEach(async () => {
  fixture = await ProxyFixture.create();
  engine = new ScriptedEngine();
  replica = await fixture.start(() => engine, { site: { spoolTurns: SPOOL_TURNS } });
  await fixture.publishWeights(0);
});
afterEach(() => fixture.stop());

const outages = {
  "killed and started again": { begin: () => fixture.nats.kill(), end: () => fixture.nats.restart() },
  "stopped and continued": {
    begin: async () => void process.kill(fixture.nats.pid, "SIGSTOP"),
    end: async () => void process.kill(fixture.nats.pid, "SIGCONT"),
  },
};

test.each(Object.entries(outages))("a server %s", async (_name, outage) => {
  const trials = ["o0", "o1", "o2", "o3"];
  const tokens = new Map<string, string>();
  for (const trial of trials) tokens.set(trial, await openSession(replica, trial));
  const ask = (trial: string, text: string, path = "/v1/chat/completions") => {
    engine.play({ ids: fixture.ids(text) });
    const body = { max_tokens: 9, messages: [user], stream: true };
    return call(replica.modelAddress, { token: tokens.get(trial)!, path, body });
  };
  expect(joinStream((await ask("o0", "done").done).text)).toMatchObject({ isDone: true });

  await outage.begin();
  // Two turns of one session, one of another: sampled and shown, but not ended.
  const waiting = [ask("o0", "done ok"), ask("o0", "ok done"), ask("o1", "ok")];
  await until(() => waiting.every((one) => joinStream(one.received()).content !== ""));
  await until(async () => (await metric("mortise_proxy_spool_turns")) === SPOOL_TURNS);
  expect(waiting.map((one) => joinStream(one.received()).isDone)).toEqual([false, false, false]);
  const sampled = engine.requests.length;

  // The spool is full: nothing more is sampled, in either protocol's words for "come again".
  const chat = await ask("o2", "never").done;
  expect(chat).toMatchObject({ status: 503, headers: { "retry-after": "5", "x-should-retry": "true" } });
  const anthropic = await ask("o3", "never", "/v1/messages").done;
  expect(anthropic).toMatchObject({ status: 529, headers: { "retry-after": "5" } });
  expect(engine.requests.length).toBe(sampled);

  await outage.end();
  const replies = await Promise.all(waiting.map(async (one) => joinStream((await one.done).text)));
  expect(replies.map((reply) => reply.isDone)).toEqual([true, true, true]);
  expect(replies.map((reply) => reply.content)).toEqual(["done ok", "ok done", "ok"]);
  const journal = await fixture.turns("o0");
  expect(journal.map(({ index }) => index)).toEqual([0, 1, 2]);
  expect(await fixture.turns("o1")).toHaveLength(1);
  expect(await metric("mortise_proxy_spool_turns")).toBe(0);
  expect(await metric("mortise_proxy_spool_bytes")).toBe(0);

  // Who was told to come again is served, and the seals know every turn.
  engine.play({ ids: fixture.ids("done") });
  const again = call(replica.modelAddress, { token: tokens.get("o2")!, body: { messages: [user] } });
  expect((await again.done).status).toBe(200);
  for (const [trial, turns] of [
    ["o0", 3],
    ["o1", 1],
    ["o2", 1],
  ] as const) {
    const { seal } = await replica.rpc.sealSession({ run: RUN, trial });
    expect(seal!.turns).toHaveLength(turns);
  }
});

test("a client that leaves during the outage finds the turn when it comes back", async () => {
  const token = await openSession(replica, "o0");
  await fixture.nats.kill();
  engine.play({ ids: fixture.ids("done") });
  const body = { messages: [user], stream: true };
  const open = call(replica.modelAddress, { token, body });
  await until(() => joinStream(open.received()).content === "done");
  open.request.destroy();
  await until(async () => (await metric("mortise_proxy_spool_turns")) === 1);
  const retry = call(replica.modelAddress, { token, body });
  await retry.opened;
  await fixture.nats.restart();
  expect(joinStream((await retry.done).text)).toMatchObject({ content: "done", isDone: true });
  expect(engine.requests).toHaveLength(1);
  expect(await fixture.turns("o0")).toHaveLength(1);
});

test("a call that goes on from a reply that cannot be stored is told to come again, and then served", async () => {
  const clock = new ManualClock();
  const timed = new ScriptedEngine({ id: "timed" });
  const other = await fixture.start(() => timed, { clock });
  const token = await openSession(other, "o0");
  const ids = [...fixture.ids(CALL, { ends: false }), ...fixture.ids(CALL)];
  timed.play({ ids, holdAfter: fixture.ids(CALL, { ends: false }).length });
  const open = call(other.modelAddress, { token, body: { messages: [user], tools: [EDIT], stream: true } });
  await until(() => joinStream(open.received()).arguments === "{}");
  await fixture.nats.kill();
  open.request.destroy();
  await new Promise((resolve) => setTimeout(resolve, 50));

  const [id] = joinStream(open.received()).callIds;
  const fn = { name: "edit", arguments: "{}" };
  const echo = { role: "assistant", tool_calls: [{ id, type: "function", function: fn }] };
  const messages = [user, echo, { role: "tool", tool_call_id: id, content: "ok" }];
  const goOn = () => call(other.modelAddress, { token, body: { messages, tools: [EDIT] } }).done;
  let refused: Answer | undefined;
  void goOn().then((answer) => {
    refused = answer;
  });
  await until(() => {
    clock.advance(1_000);
    return refused !== undefined;
  });
  expect(refused).toMatchObject({ status: 503, headers: { "x-should-retry": "true" } });

  await fixture.nats.restart();
  await until(async () => {
    clock.advance(1_000);
    return (await fixture.turns("o0")).length === 1;
  });
  timed.play({ ids: fixture.ids("done") });
  expect((await goOn()).status).toBe(200);
  const [first, second] = await fixture.turns("o0");
  expect(second!.parent).toBe(first!.turn);
});

async function metric(name: string): Promise<number> {
  const line = (await replica.metrics.render()).split("\n").find((one) => one.startsWith(`${name} `));
  return Number(line?.split(" ")[1]);
}
