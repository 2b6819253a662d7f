/**
 * Owns removing what a manager left that did not end by itself: processes, control groups, mounts and run
 * directories that carry its owner mark. Does not touch caches (images, trees) or anything of another owner.
 *
 * S1  The caller holds the claim on the state directory (see ../owner.ts): nothing live is ever swept.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { ownerMark } from "../owner.js";
import type { SweepReport } from "../types.js";
import { CgroupHost } from "./cgroup.js";
import { unmount } from "./syscalls.js";

/** Parent of all control groups of this state directory. */
export function cgroupParent(stateDirectory: string): string {
  return `/mortise/${ownerMark(stateDirectory)}`;
}

/** Where everything lives that must not survive the manager. */
export function runDirectory(stateDirectory: string): string {
  return path.join(stateDirectory, "run");
}

/** Removes what an ended owner of this state directory left (S1). */
export async function sweep(stateDirectory: string): Promise<SweepReport> {
  const run = runDirectory(stateDirectory);
  const containers = existsSync(run) ? countContainers(run) : 0;
  const directories = existsSync(run) ? readdirSync(run).length : 0;
  const { processes, cgroups } = await sweepCgroups(cgroupParent(stateDirectory));
  // Deepest first: an overlay is mounted inside the memory file system that holds its layers.
  const mounted = mountsBelow(run).sort((a, b) => b.length - a.length);
  for (const target of mounted) unmount(target);
  rmSync(run, { recursive: true, force: true });
  return { processes, mounts: mounted.length, cgroups, containers, directories };
}

async function sweepCgroups(parent: string): Promise<{ processes: number; cgroups: number }> {
  const host = CgroupHost.detect();
  if (host === undefined) return { processes: 0, cgroups: 0 };
  const processes = host.kill(parent);
  const cgroups = host.children(parent).length;
  await host.remove(parent);
  host.removeIfEmpty(path.dirname(parent));
  return { processes, cgroups };
}

function countContainers(run: string): number {
  const sandboxes = readdirSync(run, { withFileTypes: true }).filter((child) => child.isDirectory());
  return sandboxes.filter((child) =>
    readdirSync(path.join(run, child.name)).some((name) => name.startsWith("command-")),
  ).length;
}

/** Mount points at and below a directory, as this process sees them. */
export function mountsBelow(directory: string): string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => unescapeMountPath(line.split(" ")[4] ?? ""))
    .filter((target) => target === directory || target.startsWith(`${directory}/`));
}

/** mountinfo writes blanks and backslashes as three octal digits. */
function unescapeMountPath(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
