/**
 * Owns the question what a run has left on this machine: processes, mounts, control groups with their containers.
 * Its files are meant to stay: `--resume` needs them. A sandbox's network namespace has no name; it ends with the
 * last process that is in it or holds it open, so where no process and no mount is left there is none either.
 */
import { createHash } from "node:crypto";
import { globSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { processesOf } from "./quickstart-process.js";

export interface Remains {
  readonly processes: readonly string[];
  readonly mounts: readonly string[];
  /** In every hierarchy; a process of a sandbox, whatever its command line, is in one. */
  readonly cgroups: readonly string[];
}

export const nothing: Remains = { processes: [], mounts: [], cgroups: [] };

/** @param directory of the run */
export function remainsOf(directory: string): Remains {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((target) => target.startsWith(`${directory}/`));
  const mark = ownerMark(join(directory, "state", "sandbox-manager", "runc"));
  return {
    processes: processesOf(directory).map(({ pid, argv }) => `${pid} ${argv.join(" ")}`),
    mounts,
    cgroups: globSync([`/sys/fs/cgroup/mortise/${mark}`, `/sys/fs/cgroup/*/mortise/${mark}`]),
  };
}

/** As the sandbox-manager names the parent of its control groups: by where its state is. */
function ownerMark(stateDirectory: string): string {
  return createHash("sha256").update(realpathSync(stateDirectory)).digest("hex").slice(0, 12);
}
