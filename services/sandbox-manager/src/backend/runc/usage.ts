/** Owns adding up what commands used. Does not measure (see cgroup.ts). */
import type { Usage } from "../types.js";

const SUMS = ["cpuMs", "throttledMs", "diskWaitMs", "oomKills", "pidsRefusals"] as const;

/** Sums over commands; a peak is the highest. A number missing once is missing in the sum (C10). */
export function addedUsage(all: readonly Usage[]): Usage {
  const added: { -readonly [Key in keyof Usage]: number } = {};
  if (all.length === 0) return added;
  for (const key of SUMS) {
    const values = all.map((usage) => usage[key]);
    if (values.every((value) => value !== undefined))
      added[key] = values.reduce((sum, value) => sum + value, 0);
  }
  const peaks = all.flatMap(({ memoryPeakBytes }) => memoryPeakBytes ?? []);
  if (peaks.length > 0) added.memoryPeakBytes = Math.max(...peaks);
  return added;
}
