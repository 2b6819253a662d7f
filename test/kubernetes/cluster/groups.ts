/** Owns the control group below which a test cluster's pods are: one a hierarchy, there before the kubelet is. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const ATTEMPTS = 50;
const PAUSE_MS = 100;

export function makeGroups(group: string): void {
  for (const root of hierarchies()) mkdirSync(path.join(root, group), { recursive: true });
}

/** Kills what is left in them. */
export async function removeGroups(group: string): Promise<void> {
  for (const root of hierarchies()) {
    const top = path.join(root, group);
    for (let attempt = 0; existsSync(top) && attempt < ATTEMPTS; attempt++) {
      removeTree(top);
      if (existsSync(top)) await delay(PAUSE_MS);
    }
  }
}

function hierarchies(): string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => / - cgroup2? /.test(line))
    .map((line) => line.split(" ")[4]!);
}

function removeTree(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory()) removeTree(path.join(directory, entry.name));
  try {
    for (const pid of readFileSync(path.join(directory, "cgroup.procs"), "utf8").split("\n"))
      if (pid !== "") process.kill(Number(pid), "SIGKILL");
    rmdirSync(directory);
  } catch {
    // The kernel takes a moment after the last process; the next attempt finds it so.
  }
}
