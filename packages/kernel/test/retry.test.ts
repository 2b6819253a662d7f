import { expect, test } from "vitest";
import { ManualClock } from "../src/clock.js";
import { backoff, retry, sleep } from "../src/retry.js";

test("a delay doubles up to its limit, and half of it is random", () => {
  const options = { baseMs: 100, maxMs: 1_000 };
  const least = [0, 1, 2, 3, 4, 50].map((n) => backoff(n, { ...options, random: () => 0 }));
  expect(least).toEqual([50, 100, 200, 400, 500, 500]);
  expect(backoff(1, { ...options, random: () => 0.5 })).toBe(150);
});

test("gives up after the last attempt with the last error", async () => {
  const clock = new ManualClock();
  let calls = 0;
  const attempt = () => Promise.reject(new Error(`attempt ${++calls}`));
  const outcome = retry(attempt, { attempts: 3, baseMs: 10, maxMs: 10, clock }).catch(
    (error: Error) => error.message,
  );
  for (let i = 0; i < 10; i++) {
    await new Promise(setImmediate);
    clock.advance(10);
  }
  expect(await outcome).toBe("attempt 3");
});

test("an error that is not worth it is thrown at once", async () => {
  let calls = 0;
  const attempt = () => {
    calls++;
    return Promise.reject(new Error("final"));
  };
  await expect(
    retry(attempt, { attempts: 5, baseMs: 1, maxMs: 1, isRetryable: () => false }),
  ).rejects.toThrow("final");
  expect(calls).toBe(1);
});

test("an aborted signal ends the wait", async () => {
  const abort = new AbortController();
  const waiting = sleep(1_000, new ManualClock(), abort.signal);
  abort.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
});
