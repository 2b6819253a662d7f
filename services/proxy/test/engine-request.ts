/** A request for an engine, with what a test does not care about filled in. */
import type { GenerateRequest } from "../src/engine/types.js";

export const STOP = 2;

export function engineRequest(over: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    affinity: "trial",
    contextIds: Int32Array.of(5, 6, 7),
    maxTokens: 16,
    temperature: 1,
    stopIds: new Set([STOP]),
    rngKey: "key",
    turnIndex: 0,
    onIds: undefined,
    signal: new AbortController().signal,
    ...over,
  };
}
