/** A turn in the making, with time in the test's hands: who waits for it, and when it is given up. */
import { digestRequest } from "@mortise/capture";
import { ManualClock } from "@mortise/kernel";
import { beforeEach, expect, test } from "vitest";
import { Reply } from "../src/session/reply.js";
import { FORSAKEN_MS, RunningTurn } from "../src/session/running-turn.js";

const digests = digestRequest({ messages: [{ role: "user", text: "fix" }], tools: [] });
let clock: ManualClock;
let turn: RunningTurn;
let cut: unknown;

beforeEach(() => {
  clock = new ManualClock();
  cut = undefined;
  turn = new RunningTurn({ reply: new Reply("t", 1), digests, clock }, (signal) => {
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        cut = signal.reason;
        resolve();
      });
    });
  });
});

test("a turn whose connection is open is never given up", () => {
  turn.connect();
  clock.advance(100 * FORSAKEN_MS);
  expect(cut).toBeUndefined();
  expect(turn.isJoinedBy(digests)).toBe(false);
});

test("a turn nobody asks for again is cut after a time, and joined by nobody then (R1)", () => {
  turn.connect().lost();
  clock.advance(FORSAKEN_MS - 1);
  expect(cut).toBeUndefined();
  expect(turn.isJoinedBy(digests)).toBe(true);
  clock.advance(1);
  expect(cut).toMatchObject({ code: "MORTISE_TRANSPORT_CANCELLED" });
  expect(turn.isJoinedBy(digests)).toBe(false);
});

test("a retry stops that time, and losing it starts another", () => {
  turn.connect().lost();
  clock.advance(FORSAKEN_MS - 1);
  const retry = turn.connect();
  clock.advance(2 * FORSAKEN_MS);
  expect(cut).toBeUndefined();
  retry.lost();
  clock.advance(FORSAKEN_MS - 1);
  expect(cut).toBeUndefined();
  clock.advance(1);
  expect(cut).toBeDefined();
});

test("of two connections the last one counts", () => {
  const [one, two] = [turn.connect(), turn.connect()];
  one.lost();
  clock.advance(2 * FORSAKEN_MS);
  expect(cut).toBeUndefined();
  two.lost();
  clock.advance(FORSAKEN_MS);
  expect(cut).toBeDefined();
});
