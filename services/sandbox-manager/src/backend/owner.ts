/**
 * Owns the question whose a state directory is: one live process at a time, and a mark under which that
 * owner's control groups and containers can be found after it died.
 * Does not remove anything.
 */
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { sha256 } from "../patch/patch.js";

const MARK_LENGTH = 12;

/** Digest of the state directory's path: a new manager on the same directory finds what the old one left. */
export function ownerMark(stateDirectory: string): string {
  return sha256(realpathSync(stateDirectory)).slice(0, MARK_LENGTH);
}

/** Process that owns the state directory now; undefined when none that lives does. */
export function liveOwner(stateDirectory: string): number | undefined {
  const file = path.join(stateDirectory, "owner");
  const earlier = existsSync(file) ? readFileSync(file, "utf8") : "";
  const pid = Number(earlier.split(" ")[0]);
  return pid > 0 && earlier === processIdentity(pid) ? pid : undefined;
}

/** Makes this process the owner. Rejects with MORTISE_SANDBOX_STATE_IN_USE while another owner lives. */
export function claim(stateDirectory: string): void {
  mkdirSync(stateDirectory, { recursive: true, mode: 0o755 });
  const pid = liveOwner(stateDirectory);
  if (pid !== undefined && pid !== process.pid)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_STATE_IN_USE",
      message: `${stateDirectory} belongs to process ${pid}`,
    });
  writeFileSync(path.join(stateDirectory, "owner"), processIdentity(process.pid) ?? `${process.pid}`);
}

export function release(stateDirectory: string): void {
  rmSync(path.join(stateDirectory, "owner"), { force: true });
}

/** Pid and start time, since a pid alone may be given to another process; undefined if it is gone or unknown. */
export function processIdentity(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return `${pid} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}`;
  } catch {
    return undefined;
  }
}
