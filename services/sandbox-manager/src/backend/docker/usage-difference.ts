/** Owns what one command added to a container's counters. Does not read them. */
import type { Usage } from "../types.js";

const SUMS = ["cpuMs", "throttledMs", "diskWaitMs", "oomKills", "pidsRefusals"] as const;

/** A number missing before or after is missing (C10). The peak is the container's so far. */
export function differenceOf(before: Usage, after: Usage): Usage {
  const difference: { -readonly [Key in keyof Usage]: number } = {};
  for (const key of SUMS) {
    const [from, to] = [before[key], after[key]];
    if (from !== undefined && to !== undefined) difference[key] = to - from;
  }
  if (after.memoryPeakBytes !== undefined) difference.memoryPeakBytes = after.memoryPeakBytes;
  return difference;
}
