/** The spool by itself, with time in the test's hands. */
import { MortiseError } from "@mortise/contracts";
import { createLog, ManualClock } from "@mortise/kernel";
import { expect, test } from "vitest";
import { Spool } from "../src/session/spool.js";
import { until } from "./http-client.js";

const log = createLog({ service: "proxy", level: "silent" });
const away = () => new MortiseError({ code: "MORTISE_TRANSPORT_UNAVAILABLE", message: "x" });

function spoolOf(limits: { maxTurns?: number; maxBytes?: number } = {}) {
  const clock = new ManualClock();
  return { clock, spool: new Spool({ maxTurns: 2, maxBytes: 100, ...limits, clock, log }) };
}

test("it is full by turns or by bytes, and empty again once they are stored or have failed", async () => {
  const { spool } = spoolOf();
  const stored = Promise.withResolvers<void>();
  const first = spool.hold(99, () => stored.promise);
  expect(() => spool.refuseIfFull()).not.toThrow();
  const second = spool.hold(1, () => Promise.reject(away()));
  expect(() => spool.refuseIfFull()).toThrow(/2 sampled turns \(100 bytes\)/);
  await expect(second).rejects.toMatchObject({ code: "MORTISE_TRANSPORT_UNAVAILABLE" });
  expect([spool.turns, spool.bytes]).toEqual([1, 99]);
  stored.resolve();
  await first;
  expect([spool.turns, spool.bytes]).toEqual([0, 0]);
});

test("while the bus is away one turn tries and the others wait for it (P2)", async () => {
  const { spool, clock } = spoolOf();
  let isAway = true;
  const tries = [0, 0, 0];
  const append = (at: number) => async () => {
    tries[at]!++;
    if (isAway) throw away();
    return at;
  };
  const stored = Promise.all(tries.map((_, at) => spool.store(append(at))));
  await until(() => tries.every((count) => count === 1));
  for (let tick = 0; tick < 20; tick++) {
    clock.advance(2_000);
    await new Promise(setImmediate);
  }
  expect(tries.map((count) => count > 1)).toEqual([true, false, false]);
  isAway = false;
  clock.advance(2_000);
  expect(await stored).toEqual([0, 1, 2]);
  expect(tries.slice(1)).toEqual([2, 2]);
});

test("what is no outage is the caller's, at once", async () => {
  const { spool } = spoolOf();
  const conflict = new MortiseError({ code: "MORTISE_TRANSPORT_SEQUENCE_CONFLICT", message: "x" });
  await expect(spool.store(() => Promise.reject(conflict))).rejects.toBe(conflict);
});

test("a process that ends gives up what waits", async () => {
  const { spool } = spoolOf();
  const stored = spool.store(() => Promise.reject(away()));
  await new Promise(setImmediate);
  spool.close();
  await expect(stored).rejects.toMatchObject({ code: "MORTISE_TRANSPORT_UNAVAILABLE" });
});
