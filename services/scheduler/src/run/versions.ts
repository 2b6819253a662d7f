/** Owns which policy version new sessions are sampled from, as far as engines have said so. */
import type { RunState } from "./state.js";

/**
 * Engines take a published version some time after it is current; until one has acknowledged it, sessions that open are
 * sampled from the one before, and count as such. -1 before the first weights, which no older ones precede.
 */
export function sampledVersion({
  version,
  acknowledged,
}: Pick<RunState, "version" | "acknowledged">): number {
  return Math.min(version, Math.max(0, acknowledged));
}
