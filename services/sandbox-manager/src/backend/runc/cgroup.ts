/**
 * Owns what we read from and do to control groups: usage and evidence, what a whole sandbox may use, killing a tree,
 * removal. Knows cgroup v1 (one hierarchy per controller) and v2. Limits of a single command are written by runc.
 *
 * G1  Every group of this manager lies below `/mortise/<owner>`, so a sweep touches nothing else.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Usage } from "../types.js";

/** The kernel refuses removal for a moment after the last process died. */
const REMOVE_ATTEMPTS = 20;
const REMOVE_PAUSE_MS = 10;
const CPU_PERIOD_US = 100_000;
/** The kernel takes no less. */
const MIN_CPU_QUOTA_US = 1000;

/** What all processes of a group may use together. */
export interface GroupLimits {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly pids: number;
}

export class CgroupHost {
  readonly version: 1 | 2;
  /** Mount point per v1 controller; for v2 the one mount point under the empty name. */
  readonly #roots: ReadonlyMap<string, string>;

  private constructor(version: 1 | 2, roots: ReadonlyMap<string, string>) {
    this.version = version;
    this.#roots = roots;
  }

  /** Undefined when no usable hierarchy is mounted. A hybrid host counts as v1: there the controllers are. */
  static detect(mountinfo = readFileSync("/proc/self/mountinfo", "utf8")): CgroupHost | undefined {
    const v1 = new Map<string, string>();
    let v2: string | undefined;
    for (const line of mountinfo.split("\n")) {
      const [before, after] = line.split(" - ");
      const mountPoint = before?.split(" ")[4];
      const [type, , options] = after?.split(" ") ?? [];
      if (mountPoint === undefined) continue;
      if (type === "cgroup2") v2 ??= mountPoint;
      if (type === "cgroup") for (const name of controllersOf(options ?? "")) v1.set(name, mountPoint);
    }
    if (v1.has("memory") && v1.has("pids")) {
      // runc makes each group in a hybrid host's unified hierarchy too: no controller is there, but it must go.
      if (v2 !== undefined) v1.set("", v2);
      return new CgroupHost(1, v1);
    }
    if (v2 !== undefined && existsSync(path.join(v2, "cgroup.controllers")))
      return new CgroupHost(2, new Map([["", v2]]));
    return undefined;
  }

  /** v1 can only limit swap when the kernel accounts for it. */
  get canLimitSwap(): boolean {
    return (
      this.version === 2 || existsSync(path.join(this.#roots.get("memory")!, "memory.memsw.limit_in_bytes"))
    );
  }

  /** Makes a group with limits; groups made below it share them. Throws what the kernel says. */
  make(group: string, { cpus, memoryBytes, pids }: GroupLimits): void {
    const quota = Math.max(MIN_CPU_QUOTA_US, Math.round(cpus * CPU_PERIOD_US));
    const bytes = String(memoryBytes);
    if (this.version === 2) {
      this.#write("", group, {
        "cpu.max": `${quota} ${CPU_PERIOD_US}`,
        "memory.max": bytes,
        "memory.swap.max": "0",
        "pids.max": String(pids),
      });
      return;
    }
    this.#write("cpu", group, {
      "cpu.cfs_period_us": String(CPU_PERIOD_US),
      "cpu.cfs_quota_us": String(quota),
    });
    const swap = this.canLimitSwap ? { "memory.memsw.limit_in_bytes": bytes } : {};
    this.#write("memory", group, { "memory.limit_in_bytes": bytes, ...swap });
    this.#write("pids", group, { "pids.max": String(pids) });
  }

  #write(controller: string, group: string, values: Readonly<Record<string, string>>): void {
    const root = this.#roots.get(controller);
    // A v1 host need not have the cpu controller.
    if (root === undefined) return;
    const directory = path.join(root, group);
    mkdirSync(directory, { recursive: true });
    if (this.version === 2) delegate(root, group);
    for (const [name, value] of Object.entries(values)) writeFileSync(path.join(directory, name), value);
  }

  /** Peak, CPU time and limit events of a group; what the kernel does not offer is absent (C10). */
  usage(group: string): Usage {
    const measured =
      this.version === 1
        ? {
            cpuMs: scaled(this.#read("cpuacct", group, "cpuacct.usage"), 1e-6),
            throttledMs: scaled(field(this.#read("cpu", group, "cpu.stat"), "throttled_time"), 1e-6),
            memoryPeakBytes: scaled(this.#read("memory", group, "memory.max_usage_in_bytes"), 1),
            oomKills: field(this.#read("memory", group, "memory.oom_control"), "oom_kill"),
            pidsRefusals: field(this.#read("pids", group, "pids.events"), "max"),
          }
        : {
            cpuMs: scaled(field(this.#read("", group, "cpu.stat"), "usage_usec"), 1e-3),
            throttledMs: scaled(field(this.#read("", group, "cpu.stat"), "throttled_usec"), 1e-3),
            memoryPeakBytes: scaled(this.#read("", group, "memory.peak"), 1),
            oomKills: field(this.#read("", group, "memory.events"), "oom_kill"),
            pidsRefusals: field(this.#read("", group, "pids.events"), "max"),
          };
    const all = { ...measured, diskWaitMs: this.#diskWaitMs(group) };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  }

  /**
   * From the unified hierarchy's pressure stall information, "some": the time in which at least one process of the
   * group stood still for a block device. A hybrid host has it too, unless the kernel was started without.
   */
  #diskWaitMs(group: string): number | undefined {
    const total = /^some .*total=([0-9]+)$/m.exec(this.#read("", group, "io.pressure") ?? "")?.[1];
    return scaled(total, 1e-3);
  }

  /** Processes in a group and below, as this host numbers them. */
  processes(group: string): number[] {
    const found = new Set<number>();
    collectProcesses(path.join(this.#roots.get("pids") ?? this.#roots.get("")!, group), found);
    return [...found];
  }

  /** Sends SIGKILL to every process in a group and below; returns how many there were. */
  kill(group: string): number {
    // Every hierarchy holds the same processes; the pids controller's is there in any configuration.
    return killAll(path.join(this.#roots.get("pids") ?? this.#roots.get("")!, group));
  }

  /** Removes a group and all below it in every hierarchy, killing what is still in it. */
  async remove(group: string): Promise<void> {
    for (const root of new Set(this.#roots.values())) await removeTree(path.join(root, group));
  }

  /** Removes a group that other owners may share, unless something is in it. */
  removeIfEmpty(group: string): void {
    for (const root of new Set(this.#roots.values())) {
      try {
        rmdirSync(path.join(root, group));
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code !== "EBUSY" && code !== "ENOTEMPTY" && code !== "ENOENT") throw error;
      }
    }
  }

  /** Direct children of a group, over all hierarchies. */
  children(group: string): string[] {
    const names = new Set<string>();
    for (const root of this.#roots.values())
      for (const name of subgroups(path.join(root, group))) names.add(name);
    return [...names];
  }

  #read(controller: string, group: string, file: string): string | undefined {
    const root = this.#roots.get(controller);
    return root === undefined ? undefined : readIfThere(path.join(root, group, file));
  }
}

/** v2 gives a group the controllers that each group above it hands down. */
function delegate(root: string, group: string): void {
  let directory = root;
  for (const part of group.split("/").filter((name) => name !== "")) {
    writeFileSync(path.join(directory, "cgroup.subtree_control"), "+cpu +memory +pids");
    directory = path.join(directory, part);
  }
}

function controllersOf(superOptions: string): string[] {
  return superOptions
    .split(",")
    .filter((option) => !["rw", "ro", "xattr", "clone_children"].includes(option));
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function scaled(value: string | number | undefined, factor: number): number | undefined {
  return value === undefined ? undefined : Number(value) * factor;
}

function field(text: string | undefined, name: string): number | undefined {
  const line = text?.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}

function subgroups(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true })
    .filter((child) => child.isDirectory())
    .map((child) => child.name);
}

function collectProcesses(directory: string, into: Set<number>): void {
  for (const name of subgroups(directory)) collectProcesses(path.join(directory, name), into);
  for (const line of readIfThere(path.join(directory, "cgroup.procs"))?.split("\n") ?? [])
    if (line !== "") into.add(Number(line));
}

/** Nearly always the group is empty and one call is all it takes. */
async function removeTree(directory: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      rmdirSync(directory);
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return;
      if ((code !== "EBUSY" && code !== "ENOTEMPTY") || attempt === REMOVE_ATTEMPTS) throw error;
      killAll(directory);
      for (const name of subgroups(directory)) await removeTree(path.join(directory, name));
      if (attempt > 1) await delay(REMOVE_PAUSE_MS);
    }
  }
}

function killAll(directory: string): number {
  const pids = new Set<number>();
  collectProcesses(directory, pids);
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended by itself in between.
    }
  }
  return pids.size;
}
