/**
 * Owns the processes of one container as its host sees them: which there are, which are a command's, and killing
 * these. Does not freeze the container; whoever asks for a kill has.
 *
 * P2  The container's first process is never touched; it is the container.
 */
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { CgroupHost } from "../../runc/cgroup.js";
import type { Usage } from "../../types.js";
import type { Look, StartedContainer } from "./types.js";

/** What a container's first process waits for, again and again: by it its child is known. */
export const IDLE_SECONDS = 100_000;
/** Ten seconds: on a busy machine the container's own processes wait for a core too. */
const START_ATTEMPTS = 2000;
const START_PAUSE_MS = 5;

export class HostProcesses {
  readonly #cgroups: CgroupHost;
  readonly #group: string;
  /** The first process and the child it waits for. */
  readonly #own: ReadonlySet<number>;

  private constructor(cgroups: CgroupHost, group: string, own: number[]) {
    this.#cgroups = cgroups;
    this.#group = group;
    this.#own = new Set(own);
  }

  /** Waits until the container idles. Rejects when it does not, or is not of this host. */
  static async of({ containerId, pid }: StartedContainer, cgroups: CgroupHost): Promise<HostProcesses> {
    const group = groupOf(pid, containerId);
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      const idling = cgroups.processes(group).filter(isIdling);
      if (idling.length === 1) return new HostProcesses(cgroups, group, [pid, ...idling]);
      await delay(START_PAUSE_MS);
    }
    throw new Error("the container's first process does not run; its image needs /bin/sh and sleep");
  }

  /** Counters of the whole container since its start; empty once it has ended. */
  usage(): Usage {
    return this.#cgroups.usage(this.#group);
  }

  look(pid: number | undefined): Look {
    return { isIdle: this.#others().length === 0, isAlive: pid !== undefined && existsSync(`/proc/${pid}`) };
  }

  /** See `HostedContainer.kill`. */
  kill(root: number | undefined, isAlone: boolean): void {
    const others = this.#others();
    const chosen = isAlone ? others : root === undefined ? [] : descendants(root, others);
    for (const pid of chosen) kill(pid);
  }

  #others(): number[] {
    return this.#cgroups.processes(this.#group).filter((pid) => !this.#own.has(pid));
  }
}

/** Path of a process's control group, which must be its container's: another host's numbers mean others here. */
function groupOf(pid: number, containerId: string): string {
  if (pid === 0) throw new Error("the container ended at once; its image needs /bin/sh and sleep");
  const lines = readIfThere(`/proc/${pid}/cgroup`).split("\n");
  const line =
    lines.find((candidate) => candidate.split(":")[1]?.split(",").includes("memory")) ??
    lines.find((candidate) => candidate.startsWith("0::"));
  const group = line?.split(":").slice(2).join(":") ?? "";
  if (!group.includes(containerId)) throw new Error("the engine's processes are not processes of this host");
  return group;
}

/** Whether it is what the first process waits for. */
function isIdling(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1").endsWith(`sleep\0${IDLE_SECONDS}\0`);
  } catch {
    return false;
  }
}

function descendants(root: number, among: readonly number[]): number[] {
  const parents = new Map(among.map((pid) => [pid, parentOf(pid)]));
  const isBelow = (pid: number): boolean => {
    const seen = new Set<number>();
    for (let at: number | undefined = pid; at !== undefined && !seen.has(at); at = parents.get(at)) {
      if (at === root) return true;
      seen.add(at);
    }
    return false;
  };
  return among.filter(isBelow);
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself in between.
  }
}
