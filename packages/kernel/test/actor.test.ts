import { MortiseError } from "@mortise/contracts";
import { expect, test } from "vitest";
import { Actor, type Step } from "../src/actor.js";

type Message = { add: number } | { fail: true };
type Effect = { note: string };

function counter(perform: (effect: Effect, self: { send(message: Message): void }) => void | Promise<void>) {
  const faults: unknown[] = [];
  const reduce = (sum: number, message: Message): Step<number, Effect> => {
    if ("fail" in message) throw new Error("reducer failed");
    const state = sum + message.add;
    return { state, effects: [{ note: `a${state}` }, { note: `b${state}` }] };
  };
  const onFault = (error: unknown) => {
    faults.push(error);
  };
  const actor = new Actor<number, Message, Effect>({
    name: "counter",
    initial: 0,
    reduce,
    perform,
    onFault,
    capacity: 4,
  });
  return { actor, faults };
}

test("A1, A2: messages in order, effects of one before the next", async () => {
  const notes: string[] = [];
  const { actor } = counter((effect) => {
    notes.push(effect.note);
  });
  actor.send({ add: 1 });
  actor.send({ add: 2 });
  expect(actor.state).toBe(0);
  await actor.idle();
  expect(actor.state).toBe(3);
  expect(notes).toEqual(["a1", "b1", "a3", "b3"]);
});

test("an effect's answer is a later message", async () => {
  const notes: string[] = [];
  const { actor } = counter((effect, self) => {
    notes.push(effect.note);
    if (effect.note === "a1") self.send({ add: 10 });
  });
  actor.send({ add: 1 });
  await actor.idle();
  expect(notes).toEqual(["a1", "b1", "a11", "b11"]);
});

test("A3: a failing reducer leaves the state and reaches the owner; later messages go on", async () => {
  const { actor, faults } = counter(() => {});
  actor.send({ add: 1 });
  actor.send({ fail: true });
  actor.send({ add: 1 });
  await actor.idle();
  expect(actor.state).toBe(2);
  expect(faults).toEqual([new Error("reducer failed")]);
});

test("A3: an effect that rejects or throws reaches the owner", async () => {
  const { actor, faults } = counter((effect) => {
    if (effect.note.startsWith("a")) throw new Error("thrown");
    return Promise.reject(new Error("rejected"));
  });
  actor.send({ add: 1 });
  await actor.idle();
  expect(faults).toEqual([new Error("thrown"), new Error("rejected")]);
});

test("idle waits for running effects, stop for those already started", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { actor } = counter((effect) => (effect.note === "a1" ? promise : undefined));
  actor.send({ add: 1 });
  let isIdle = false;
  const idle = actor.idle().then(() => {
    isIdle = true;
  });
  await new Promise(setImmediate);
  expect(isIdle).toBe(false);
  const stopped = actor.stop();
  actor.send({ add: 5 });
  resolve();
  await Promise.all([stopped, idle]);
  expect(actor.state).toBe(1);
});

test("a full mailbox refuses with a code", () => {
  const { actor } = counter(() => {});
  for (let i = 0; i < 4; i++) actor.send({ add: 1 });
  let refusal: unknown;
  try {
    actor.send({ add: 1 });
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(MortiseError);
  expect(refusal).toMatchObject({ code: "MORTISE_TRANSPORT_MAILBOX_FULL", disposition: "retry" });
});
