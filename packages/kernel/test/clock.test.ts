import { expect, test } from "vitest";
import { ManualClock } from "../src/clock.js";
import { TimerWheel } from "../src/timer-wheel.js";

test("a manual clock calls what falls due, in order of due time", () => {
  const clock = new ManualClock(1_000);
  const calls: [string, number][] = [];
  clock.after(30, () => calls.push(["late", clock.now()]));
  clock.after(10, () => {
    calls.push(["early", clock.now()]);
    clock.after(5, () => calls.push(["nested", clock.now()]));
  });
  clock.advance(29);
  expect(calls).toEqual([
    ["early", 1_010],
    ["nested", 1_015],
  ]);
  clock.advance(1);
  expect(calls.at(-1)).toEqual(["late", 1_030]);
});

test("W1: a wheel never fires early and at most a tick late", () => {
  const clock = new ManualClock(7);
  const wheel = new TimerWheel(clock, 20, 8);
  for (const delayMs of [0, 1, 19, 20, 21, 159, 160, 161, 1_000]) {
    const startedAt = clock.now();
    let firedAt: number | undefined;
    wheel.after(delayMs, () => {
      firedAt = clock.now();
    });
    while (firedAt === undefined) clock.advance(1);
    expect(firedAt - startedAt).toBeGreaterThanOrEqual(delayMs);
    expect(firedAt - startedAt).toBeLessThanOrEqual(delayMs + 40);
  }
});

test("W2: a jump over several rounds still fires in order", () => {
  const clock = new ManualClock();
  const wheel = new TimerWheel(clock, 10, 4);
  const fired: number[] = [];
  for (const delayMs of [500, 15, 90, 41, 40]) wheel.after(delayMs, () => fired.push(delayMs));
  clock.advance(10_000);
  expect(fired).toEqual([15, 40, 41, 90, 500]);
});

test("a cancelled timer does not fire, also when cancelled from another timer of its tick", () => {
  const clock = new ManualClock();
  const wheel = new TimerWheel(clock, 10);
  const fired: string[] = [];
  const cancels = [() => {}, () => {}];
  wheel.after(10, () => {
    fired.push("first");
    cancels[1]!();
  });
  cancels[1] = wheel.after(10, () => fired.push("second"));
  cancels[0] = wheel.after(30, () => fired.push("third"));
  cancels[0]();
  clock.advance(100);
  expect(fired).toEqual(["first"]);
});

test("W3: an empty wheel asks nothing of its clock", () => {
  const asked: number[] = [];
  const clock = new ManualClock();
  const counting = {
    now: () => clock.now(),
    after(delayMs: number, fn: () => void) {
      asked.push(delayMs);
      return clock.after(delayMs, fn);
    },
  };
  const wheel = new TimerWheel(counting, 10);
  const cancel = wheel.after(20, () => {});
  expect(asked).toHaveLength(1);
  cancel();
  clock.advance(1_000);
  expect(asked).toHaveLength(1);
});
