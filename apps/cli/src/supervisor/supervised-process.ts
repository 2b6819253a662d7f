/**
 * Owns the life of one supervised process as a pure reducer: when it is spawned, spawned again, told to stop,
 * killed, given up. Does not touch the operating system (see supervisor.ts).
 *
 * S1  A process that dies unasked is spawned again after a delay that doubles with each quick death.
 * S2  The delay starts over once a process has lived for MIN_UPTIME_MS: an old death says nothing about a new one.
 * S3  A process is given up when it says that the operator must act (exit code 2), or after MAX_QUICK_DEATHS.
 * S4  Stopping is asked with SIGTERM and enforced with SIGKILL after the drain time; nothing is spawned after it.
 */
import type { Step } from "@mortise/kernel";

export const MIN_UPTIME_MS = 10_000;
export const MAX_QUICK_DEATHS = 8;
const BASE_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;
const OPERATOR_ERROR = 2;

export type Phase = "stopped" | "running" | "waiting" | "stopping" | "failed";

export interface ProcessState {
  readonly phase: Phase;
  readonly startedAtMs: number;
  /** Times it was spawned again. */
  readonly restarts: number;
  readonly quickDeaths: number;
  readonly drainMs: number;
}

export type ProcessMessage =
  | { readonly kind: "start"; readonly atMs: number }
  | {
      readonly kind: "exited";
      readonly code: number | null;
      readonly signal: string | null;
      readonly atMs: number;
    }
  | { readonly kind: "delay-over"; readonly atMs: number }
  | { readonly kind: "stop" }
  | { readonly kind: "drain-over" };

export type ProcessEffect =
  | { readonly kind: "spawn" }
  | { readonly kind: "wait"; readonly delayMs: number }
  | { readonly kind: "signal"; readonly signal: "SIGTERM" | "SIGKILL" }
  | { readonly kind: "watch-drain"; readonly delayMs: number }
  | {
      readonly kind: "restarting";
      readonly code: number | null;
      readonly signal: string | null;
      readonly delayMs: number;
    }
  | { readonly kind: "ended" }
  | { readonly kind: "gave-up"; readonly code: number | null; readonly signal: string | null };

export const initialState = (drainMs: number): ProcessState => ({
  phase: "stopped",
  startedAtMs: 0,
  restarts: 0,
  quickDeaths: 0,
  drainMs,
});

export function reduceProcess(
  state: ProcessState,
  message: ProcessMessage,
): Step<ProcessState, ProcessEffect> {
  switch (message.kind) {
    case "start":
      if (state.phase !== "stopped") return { state, effects: [] };
      return {
        state: { ...state, phase: "running", startedAtMs: message.atMs },
        effects: [{ kind: "spawn" }],
      };
    case "exited":
      return onExit(state, message);
    case "delay-over": {
      if (state.phase !== "waiting") return { state, effects: [] };
      const restarted: ProcessState = {
        ...state,
        phase: "running",
        startedAtMs: message.atMs,
        restarts: state.restarts + 1,
      };
      return { state: restarted, effects: [{ kind: "spawn" }] };
    }
    case "stop":
      return onStop(state);
    case "drain-over":
      return { state, effects: state.phase === "stopping" ? [{ kind: "signal", signal: "SIGKILL" }] : [] };
  }
}

function onExit(
  state: ProcessState,
  { code, signal, atMs }: Extract<ProcessMessage, { kind: "exited" }>,
): Step<ProcessState, ProcessEffect> {
  if (state.phase === "stopping")
    return { state: { ...state, phase: "stopped" }, effects: [{ kind: "ended" }] };
  if (state.phase !== "running") return { state, effects: [] };
  const quickDeaths = atMs - state.startedAtMs >= MIN_UPTIME_MS ? 1 : state.quickDeaths + 1; // S2
  if (code === OPERATOR_ERROR || quickDeaths > MAX_QUICK_DEATHS) {
    return {
      state: { ...state, phase: "failed", quickDeaths },
      effects: [{ kind: "gave-up", code, signal }],
    }; // S3
  }
  const delayMs = Math.min(MAX_DELAY_MS, BASE_DELAY_MS * 2 ** (quickDeaths - 1));
  return {
    state: { ...state, phase: "waiting", quickDeaths },
    effects: [
      { kind: "restarting", code, signal, delayMs },
      { kind: "wait", delayMs }, // S1
    ],
  };
}

function onStop(state: ProcessState): Step<ProcessState, ProcessEffect> {
  switch (state.phase) {
    case "running":
      return {
        state: { ...state, phase: "stopping" },
        effects: [
          { kind: "signal", signal: "SIGTERM" },
          { kind: "watch-drain", delayMs: state.drainMs }, // S4
        ],
      };
    case "waiting":
    case "failed":
    case "stopped":
      return { state: { ...state, phase: "stopped" }, effects: [{ kind: "ended" }] };
    case "stopping":
      return { state, effects: [] };
  }
}
