/** A request and the answers a runtime could give to it, for servers written by tests. */
import {
  INVOCATION_SCHEMA,
  type InvocationResult,
  RESULT_SCHEMA,
  type RemoteHarness,
  type StartInvocation,
} from "@mortise/contracts";
import { createLog, systemClock } from "@mortise/kernel";
import { vi } from "vitest";
import type { RemoteAgent, RemoteHandle } from "../../src/remote/agent.js";
import { carryOut, type Following, takeUp } from "../../src/remote/follow.js";

/** Exchanges over loopback are quick, machines that do much else are not. */
vi.setConfig({ testTimeout: 120_000 });

export const ID = "r1.t1";

export const REQUEST: StartInvocation = {
  schema: INVOCATION_SCHEMA,
  kind: "start",
  id: ID,
  harness: "mini",
  instruction: "Repair it.",
  model: { url: "http://127.0.0.1:1", token: "the-session-token", name: "policy", listenerKey: "" },
  image: { kind: "host" },
  workspace: { kind: "image", digest: "0".repeat(64) },
  workdir: "/workspace",
  environment: {},
  user: "agent",
  secrets: [],
  limits: {
    timeoutMs: 60_000,
    cpus: 1,
    memoryBytes: 1,
    pids: 1,
    diskBytes: 1,
    outputBytes: 1,
    patchFileBytes: 1,
    patchBytes: 1,
  },
};

export const RESULT: InvocationResult = {
  schema: RESULT_SCHEMA,
  id: ID,
  outcome: { kind: "exited", code: 0 },
  end: { kind: "completed", reason: "" },
  harness: { name: "mini", version: "1" },
  outputTail: "",
  isModelUnreachable: false,
  usage: {},
  timings: { prepareMs: 1, agentMs: 2, collectMs: 3 },
};

export function settings(changes: Partial<RemoteHarness["remote"]>): RemoteHarness["remote"] {
  return {
    protocol: "a2a",
    url: "http://127.0.0.1:1",
    modelUrl: "http://{address}",
    plainHttp: false,
    ping: true,
    startTimeoutMs: 20_000,
    silenceTimeoutMs: 60_000,
    graceMs: 60_000,
    reattachTimeoutMs: 20_000,
    pollIntervalMs: 50,
    maxAnswerBytes: 8 * 1024 * 1024,
    ...changes,
  };
}

export interface Carried {
  readonly handles: RemoteHandle[];
  readonly abort: AbortController;
  start(): Promise<InvocationResult | "cancelled">;
  takeUp(handle: RemoteHandle): Promise<InvocationResult | "cancelled">;
}

export function carried(agent: RemoteAgent, times: Following["times"], limitMs = 60_000): Carried {
  const handles: RemoteHandle[] = [];
  const abort = new AbortController();
  const following: Following = {
    agent,
    times,
    limitMs,
    clock: systemClock,
    log: createLog({ service: "test", level: "silent" }),
    signal: abort.signal,
    onHandle: (handle) => handles.push(handle),
  };
  return {
    handles,
    abort,
    start: () => carryOut(REQUEST, following),
    takeUp: (handle) => takeUp(handle, following),
  };
}

/** The error's code and words; fails when there is none. */
export async function failure(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error = await work.then(
    (value) => {
      throw new Error(`it resolved with ${JSON.stringify(value)}`);
    },
    (reason: Error & { code: string }) => reason,
  );
  return { code: error.code, message: error.message };
}
