/** Owns the refusal to start on a disk that is about to be full: a run that stops half-way loses time, not data. */
import { statfs } from "node:fs/promises";
import { MortiseError } from "@mortise/contracts";

const GIB = 1024 ** 3;
/** Streams, checkpoints and logs of a quick start take about half of this. */
export const RUN_FREE_BYTES = 2 * GIB;

/** @throws MORTISE_OPERATOR_DISK_FULL when less than `needed` bytes are free where `directory` lies. */
export async function assertFreeSpace(directory: string, needed: number = RUN_FREE_BYTES): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const free = bavail * bsize;
  if (free >= needed) return;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_DISK_FULL",
    message: `${(free / GIB).toFixed(1)} GiB are free at ${directory}; ${(needed / GIB).toFixed(1)} GiB are needed.`,
    detail: { field: "state.directory", free, needed },
  });
}
