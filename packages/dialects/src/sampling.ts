/**
 * Owns reading the sampling values of a request, whose names the protocols share. They are read to be
 * recorded: the policy decides what is applied (C8).
 */
import { type Json, optionalNumber } from "./fields.js";
import type { RequestedSampling } from "./types.js";

const INT32_MAX = 2 ** 31 - 1;

/**
 * @param limits names of the output limit, the one that counts first
 * @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming a field that is no finite number
 */
export function readSampling(request: Json, ...limits: readonly string[]): RequestedSampling {
  const read = (name: string) => optionalNumber(request[name], name);
  const [temperature, topP, topK] = [read("temperature"), read("top_p"), read("top_k")];
  const maxTokens = limits.map(read).find((limit) => limit !== undefined);
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK: recordable(topK, -INT32_MAX) }),
    ...(maxTokens !== undefined && { maxTokens: recordable(maxTokens, 0) }),
  };
}

/** A whole number as a turn record holds it: a wish beyond its range must not cost the turn its record. */
function recordable(value: number, lowest: number): number {
  return Math.min(INT32_MAX, Math.max(lowest, Math.trunc(value)));
}
