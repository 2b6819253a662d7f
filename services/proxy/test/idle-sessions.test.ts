/** Sessions nobody calls leave the memory; what comes later finds them as they were (C3, C6). */
import { Delivery, TurnRelation } from "@mortise/contracts";
import { systemClock } from "@mortise/kernel";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { IDLE_MS } from "../src/session/sessions.js";
import { call, joinStream, until } from "./http-client.js";
import { openSession, ProxyFixture, type Replica, RUN } from "./proxy-fixture.js";
import { ScriptedEngine } from "./scripted-engine.js";

let fixture: ProxyFixture;
let replica: Replica;
let engine: ScriptedEngine;
let passedMs = 0;
let trial = "";
let count = 0;

beforeAll(async () => {
  fixture = await ProxyFixture.create();
  engine = new ScriptedEngine({ choose: () => ({ ids: fixture.ids("done") }) });
  const clock = { ...systemClock, now: () => systemClock.now() + passedMs };
  replica = await fixture.start(() => engine, { clock });
  await fixture.publishWeights(0);
});
afterAll(() => fixture.stop());
beforeEach(() => {
  trial = `i${count++}`;
});

const user = { role: "user", content: "fix" };
const echo = { role: "assistant", content: "done" };
const ask = (token: string, messages: object[] = [user]) =>
  call(replica.modelAddress, { token, body: { messages, stream: true } });
const seal = async () => (await replica.rpc.sealSession({ run: RUN, trial })).seal!;

async function putAside(): Promise<number> {
  const text = await replica.metrics.render();
  return Number(/^mortise_proxy_sessions_put_aside_total (\d+)/m.exec(text)?.[1] ?? 0);
}

/** The time passes, and another session calls. */
async function idle(): Promise<void> {
  passedMs += IDLE_MS;
  await ask(await openSession(replica, `${trial}-other`)).done;
}

test("one that nobody called is out of memory, goes on where it was, and is sealed whole", async () => {
  const token = await openSession(replica, trial);
  await ask(token).done;
  await ask(token, [user, echo, user]).done;
  const before = await putAside();
  await idle();
  expect(await putAside()).toBe(before + 1);
  const third = await ask(token, [user, echo, user, echo, user]).done;
  expect(joinStream(third.text).isDone).toBe(true);
  const turns = await fixture.turns(trial);
  expect(turns.map(({ relation }) => relation)).toEqual([
    TurnRelation.ROOT,
    TurnRelation.EXTENDS,
    TurnRelation.EXTENDS,
  ]);
  expect(turns[2]!.parent).toBe(turns[1]!.turn);
  expect((await seal()).turns).toHaveLength(3);
});

test("that a reply was delivered is known afterwards: the same body is asked anew, not answered again", async () => {
  const token = await openSession(replica, trial);
  await ask(token).done;
  await idle();
  const before = engine.requests.length;
  await ask(token).done;
  expect(engine.requests.length).toBe(before + 1);
  const { turns } = await seal();
  expect(turns.map(({ delivery }) => delivery)).toEqual([Delivery.DELIVERED, Delivery.DELIVERED]);
});

test("a reply that nobody got is still there for its retry, and abandoned when none comes", async () => {
  const token = await openSession(replica, trial);
  engine.play({ ids: fixture.ids("done ok"), holdAfter: 1 });
  const first = ask(token);
  await until(() => first.received() !== "" && engine.held.length > 0);
  first.request.destroy();
  engine.held[0]!.release();
  await until(async () => (await fixture.turns(trial)).length === 1);
  await idle();
  const before = engine.requests.length;
  expect(joinStream((await ask(token).done).text).content).toBe("done ok");
  expect(engine.requests.length).toBe(before);
});

test("what was abandoned, and which budget was reached, are in a seal made from the journal", async () => {
  const token = await openSession(replica, trial, { budget: { turns: 1 } });
  engine.play({ ids: fixture.ids("done ok"), holdAfter: 1 });
  const first = ask(token);
  await until(() => first.received() !== "" && engine.held.length > 0);
  first.request.destroy();
  engine.held[0]!.release();
  await until(async () => (await fixture.turns(trial)).length === 1);
  await ask(token, [user, user]).done;
  await idle();
  const sealed = await seal();
  expect(sealed.budgetReached).toBe("turns");
  expect(sealed.turns.map(({ delivery }) => delivery)).toEqual([Delivery.ABANDONED]);
});

test("one whose turn is at the engine stays", async () => {
  const token = await openSession(replica, trial);
  engine.play({ ids: fixture.ids("done ok"), holdAfter: 1 });
  const held = ask(token);
  await until(() => engine.held.length > 0);
  await idle();
  engine.held[0]!.release();
  expect(joinStream((await held.done).text)).toMatchObject({ content: "done ok", isDone: true });
  expect((await seal()).turns).toHaveLength(1);
});
