/**
 * Owns finding and ending what runs with a directory as its root: whatever became of its parents and groups, that is
 * how a process of a place without namespaces is known. Does not start anything.
 */
import { readdirSync, readlinkSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

const PAUSE_MS = 20;
/** A process in the kernel's hands (a dead disk) cannot be waited for. */
const PATIENCE_MS = 10_000;

/** Processes whose root is `root` or below it. */
export function processesWithin(root: string): number[] {
  return readdirSync("/proc").flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    try {
      const theirs = readlinkSync(`/proc/${pid}/root`);
      return theirs === root || theirs.startsWith(`${root}/`) ? [pid] : [];
    } catch {
      return [];
    }
  });
}

/** Kills until nothing is left: one pass can miss what is being forked. Rejects when something does not die. */
export async function killWithin(root: string): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const alive = processesWithin(root);
    if (alive.length === 0) return;
    if (performance.now() > deadline) throw new Error(`processes ${alive.join(", ")} do not end`);
    for (const pid of alive) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // Gone meanwhile.
      }
    }
    await pause(PAUSE_MS);
  }
}
