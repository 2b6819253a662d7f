import { describe, expect, test } from "vitest";
import {
  initialState,
  MAX_QUICK_DEATHS,
  MIN_UPTIME_MS,
  type ProcessEffect,
  type ProcessMessage,
  reduceProcess,
} from "../../src/supervisor/supervised-process.js";

/** Feeds messages one after another; returns the last state and every effect. */
function play(messages: readonly ProcessMessage[]) {
  let state = initialState(1_000);
  const effects: ProcessEffect[] = [];
  for (const message of messages) {
    const step = reduceProcess(state, message);
    state = step.state;
    effects.push(...step.effects);
  }
  return { state, effects, kinds: effects.map(({ kind }) => kind) };
}

const start: ProcessMessage = { kind: "start", atMs: 0 };
const died = (atMs: number): ProcessMessage => ({ kind: "exited", code: null, signal: "SIGKILL", atMs });
const again = (atMs: number): ProcessMessage => ({ kind: "delay-over", atMs });
const quickDeaths = (count: number) =>
  Array.from({ length: count }, (_, index) => [died(index), again(index)]).flat();
const delays = (effects: readonly ProcessEffect[]) =>
  effects.flatMap((effect) => (effect.kind === "wait" ? [effect.delayMs] : []));

describe("a supervised process", () => {
  test("is spawned again after delays that double up to a limit (S1)", () => {
    const { state, effects } = play([start, ...quickDeaths(7)]);
    expect(delays(effects)).toEqual([200, 400, 800, 1600, 3200, 5000, 5000]);
    expect(state).toMatchObject({ phase: "running", restarts: 7 });
  });
  test("starts over with the short delay after a long life (S2)", () => {
    const { effects } = play([start, ...quickDeaths(4), died(10 + MIN_UPTIME_MS), again(20 + MIN_UPTIME_MS)]);
    expect(delays(effects)).toEqual([200, 400, 800, 1600, 200]);
  });
  test("is given up after too many quick deaths, or at once on an operator error (S3)", () => {
    const { state, kinds } = play([start, ...quickDeaths(MAX_QUICK_DEATHS), died(100)]);
    expect(state.phase).toBe("failed");
    expect(kinds.at(-1)).toBe("gave-up");
    const refused = play([start, { kind: "exited", code: 2, signal: null, atMs: 1 }, again(2)]);
    expect(refused.kinds).toEqual(["spawn", "gave-up"]);
  });
  test("is killed only when it outstays its drain, and never spawned after a stop (S4)", () => {
    const stopped = play([start, { kind: "stop" }, died(5), { kind: "drain-over" }, again(10)]);
    expect(stopped.kinds).toEqual(["spawn", "signal", "watch-drain", "ended"]);
    const stubborn = play([start, { kind: "stop" }, { kind: "drain-over" }, died(2_000)]);
    expect(stubborn.effects).toContainEqual({ kind: "signal", signal: "SIGKILL" });
    expect(stubborn.state.phase).toBe("stopped");
    const waiting = play([start, died(1), { kind: "stop" }, again(300)]);
    expect(waiting.kinds).toEqual(["spawn", "restarting", "wait", "ended"]);
  });
});
