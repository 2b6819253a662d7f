/**
 * Owns the processes of one container as this host sees them: ending a command with everything it started, and what
 * it left behind, while the container goes on. Docker itself can end only a whole container.
 *
 * P1  Processes are killed while all of them are frozen, so none can start another in between.
 * P2  The container's first process is never touched; it is the container.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type Docker from "dockerode";
import type { CgroupHost } from "../runc/cgroup.js";
import type { Usage } from "../types.js";
import { IDLE_SECONDS } from "./container-options.js";
import { ignoreMissing } from "./engine.js";

/** Ten seconds: on a busy machine the container's own processes wait for a core too. */
const START_ATTEMPTS = 2000;
const START_PAUSE_MS = 5;

export class ContainerProcesses {
  readonly #container: Docker.Container;
  readonly #cgroups: CgroupHost;
  readonly #group: string;
  /** The first process and the child it waits for. */
  readonly #own: ReadonlySet<number>;
  #killing: Promise<void> | undefined;

  private constructor(container: Docker.Container, cgroups: CgroupHost, group: string, own: number[]) {
    this.#container = container;
    this.#cgroups = cgroups;
    this.#group = group;
    this.#own = new Set(own);
  }

  /**
   * Waits until the container idles. Rejects when it does not, or is not of this host.
   * @param first process of the container, as this host numbers it
   */
  static async of(
    container: Docker.Container,
    cgroups: CgroupHost,
    first: number,
  ): Promise<ContainerProcesses> {
    const group = groupOf(first, container.id);
    for (let attempt = 0; attempt < START_ATTEMPTS; attempt++) {
      const idling = cgroups.processes(group).filter(isIdling);
      if (idling.length === 1) return new ContainerProcesses(container, cgroups, group, [first, ...idling]);
      await delay(START_PAUSE_MS);
    }
    throw new Error("the container's first process does not run; its image needs /bin/sh and sleep");
  }

  /** Counters of the whole container since its start; empty once it has ended. */
  usage(): Usage {
    return this.#cgroups.usage(this.#group);
  }

  /** Whether anything runs that was not there at the start. */
  get isIdle(): boolean {
    return this.#others().length === 0;
  }

  /**
   * Kills a command's processes (P1).
   * @param root its own process, when it is known: without more knowledge only that one's descendants are its own
   * @param isAlone whether no other command runs; asked once everything stands still
   */
  killCommand(root: number | undefined, isAlone: () => boolean): Promise<void> {
    return this.#killFrozen(() => {
      const others = this.#others();
      if (isAlone()) return others;
      return root === undefined ? [] : descendants(root, others);
    });
  }

  #others(): number[] {
    return this.#cgroups.processes(this.#group).filter((pid) => !this.#own.has(pid));
  }

  async #killFrozen(chosen: () => readonly number[]): Promise<void> {
    while (this.#killing !== undefined) await this.#killing;
    this.#killing = this.#freezeAndKill(chosen).finally(() => {
      this.#killing = undefined;
    });
    await this.#killing;
  }

  async #freezeAndKill(chosen: () => readonly number[]): Promise<void> {
    await this.#container.pause().catch(ignoreMissing);
    try {
      for (const pid of chosen()) kill(pid);
    } finally {
      await this.#container.unpause().catch(ignoreMissing);
    }
  }
}

/** Path of a process's control group, which must be its container's: a remote engine's numbers mean others here. */
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
