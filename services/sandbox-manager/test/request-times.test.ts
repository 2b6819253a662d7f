/** Time with a model request open, told from bytes on connections. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { RequestTimes } from "../src/backend/request-times.js";

const a = {};
const b = {};

test("a request is open from its first byte to the last byte of its answer", () => {
  const times = new RequestTimes();
  times.sent(a, 100);
  times.sent(a, 110);
  times.received(a, 150);
  times.received(a, 180);
  expect(times.totalMs(500)).toBe(80);
  times.sent(a, 300);
  expect(times.totalMs(350)).toBe(130);
  times.received(a, 360);
  times.closed(a, 900);
  expect(times.totalMs(1000)).toBe(140);
});

test("requests that overlap count once, one that nobody answers until its connection ends", () => {
  const times = new RequestTimes();
  times.sent(a, 0);
  times.sent(b, 50);
  times.received(a, 100);
  times.closed(b, 200);
  times.closed(b, 300);
  times.received(b, 300);
  expect(times.totalMs(1000)).toBe(200);
});

test("equals the time in which any connection has a request open, moment by moment", () => {
  const act = fc.record({
    connection: fc.nat({ max: 3 }),
    kind: fc.constantFrom("sent", "received", "closed"),
    pause: fc.nat({ max: 5 }),
  });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
      const times = new RequestTimes();
      const connections = [{}, {}, {}, {}];
      const isOpen = new Map<number, Set<number>>();
      const since = new Map<number, number>();
      const answered = new Map<number, number>();
      let now = 0;
      const mark = (n: number, from: number, to: number) => {
        for (let tick = from; tick < to; tick++) isOpen.set(tick, (isOpen.get(tick) ?? new Set()).add(n));
      };
      const end = (n: number, at: number) => {
        mark(n, since.get(n)!, answered.get(n) ?? at);
        since.delete(n);
        answered.delete(n);
      };
      for (const { connection: n, kind, pause } of acts) {
        now += pause;
        times[kind as "sent"](connections[n]!, now);
        if (kind === "sent" && answered.has(n)) end(n, now);
        if (kind === "sent" && !since.has(n)) since.set(n, now);
        if (kind === "received" && since.has(n)) answered.set(n, now);
        if (kind === "closed" && since.has(n)) end(n, now);
      }
      for (const n of since.keys()) mark(n, since.get(n)!, answered.get(n) ?? now);
      expect(times.totalMs(now)).toBe(isOpen.size);
    }),
  );
});

test("any number of requests costs the same, and none is forgotten", () => {
  const times = new RequestTimes();
  const connection = {};
  const N = 300_000;
  // 1 ms open, 1 ms not: none of them touches the next.
  for (let n = 0; n < N; n++) {
    times.sent(connection, 2 * n);
    times.received(connection, 2 * n + 1);
  }
  expect(times.totalMs(2 * N)).toBe(N);
});

test("a request that is open beside very many counts once", () => {
  const times = new RequestTimes();
  const [long, short] = [{}, {}];
  times.sent(long, 0);
  for (let n = 0; n < 10_000; n++) {
    times.sent(short, 10 * n);
    times.received(short, 10 * n + 1);
  }
  times.closed(long, 100_000);
  const total = times.totalMs(100_000);
  expect(total).toBeLessThanOrEqual(100_000);
  expect(total).toBeGreaterThanOrEqual(10_000);
});
