/**
 * Owns the OCI runtime configuration of one command in a runc sandbox: namespaces, mounts, limits, and the
 * privileges taken away. Does not write files or start anything.
 */
import { type Command, type SandboxSpec, USER_IDS, WORKSPACE } from "../types.js";
import { HOST_NAME } from "./etc-files.js";
import { seccompProfile } from "./seccomp.js";

/** Enough for a build tool; far below what would make the host run out. */
const MAX_OPEN_FILES = 4096;
/** As Docker has it. It counts as the command's memory. */
const SHARED_MEMORY_BYTES = 64 * 1024 * 1024;
/** The agent dies before any service of ours when the host itself runs out of memory. */
const OOM_SCORE_ADJ = 500;
const NO_CAPABILITIES = { bounding: [], effective: [], inheritable: [], permitted: [], ambient: [] };

/** What uid 0 could read or write there by owning the file, without any capability. */
export const MASKED_PATHS = [
  "/proc/acpi",
  "/proc/asound",
  "/proc/driver",
  "/proc/dynamic_debug",
  "/proc/kallsyms",
  "/proc/kcore",
  "/proc/keys",
  "/proc/kpagecgroup",
  "/proc/kpagecount",
  "/proc/kpageflags",
  "/proc/latency_stats",
  "/proc/mtrr",
  "/proc/sched_debug",
  "/proc/scsi",
  "/proc/slabinfo",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/vmallocinfo",
];
export const READONLY_PATHS = [
  "/proc/bus",
  "/proc/fs",
  "/proc/irq",
  "/proc/pressure",
  "/proc/sys",
  "/proc/sysrq-trigger",
];

export interface BindMount {
  /** On the host. */
  readonly source: string;
  readonly target: string;
  readonly isWritable: boolean;
}

export interface ConfigFacts {
  readonly spec: SandboxSpec;
  readonly command: Command;
  /** The mounted overlay. */
  readonly root: string;
  /** Absolute in every hierarchy. */
  readonly cgroup: string;
  /** Path of the sandbox's network namespace. */
  readonly networkNamespace: string;
  readonly mounts: readonly BindMount[];
  readonly canLimitSwap: boolean;
}

export function runtimeConfig(facts: ConfigFacts): object {
  const { spec, command } = facts;
  const id = USER_IDS[command.user ?? "agent"];
  const environment = { ...spec.image.defaults.environment, ...command.environment };
  return {
    ociVersion: "1.0.2",
    hostname: HOST_NAME,
    root: { path: facts.root, readonly: false },
    process: {
      terminal: false,
      user: { uid: id, gid: id },
      args: command.argv,
      env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
      cwd: command.cwd ?? spec.workdir ?? WORKSPACE,
      capabilities: NO_CAPABILITIES,
      noNewPrivileges: true,
      oomScoreAdj: OOM_SCORE_ADJ,
      rlimits: [
        { type: "RLIMIT_NOFILE", soft: MAX_OPEN_FILES, hard: MAX_OPEN_FILES },
        { type: "RLIMIT_CORE", soft: 0, hard: 0 },
      ],
    },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "noexec", "nodev"] },
      {
        destination: "/dev",
        type: "tmpfs",
        source: "tmpfs",
        options: ["nosuid", "noexec", "mode=755", "size=64k"],
      },
      {
        destination: "/dev/pts",
        type: "devpts",
        source: "devpts",
        options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
      },
      {
        destination: "/dev/shm",
        type: "tmpfs",
        source: "shm",
        options: ["nosuid", "noexec", "nodev", "mode=1777", `size=${SHARED_MEMORY_BYTES}`],
      },
      ...facts.mounts.map(({ source, target, isWritable }) => ({
        destination: target,
        type: "bind",
        source,
        options: ["bind", isWritable ? "rw" : "ro", "nosuid", "nodev"],
      })),
    ],
    linux: {
      cgroupsPath: facts.cgroup,
      namespaces: [
        ...["pid", "ipc", "uts", "mount"].map((type) => ({ type })),
        { type: "network", path: facts.networkNamespace },
      ],
      resources: resources(facts),
      seccomp: seccompProfile(process.arch),
      maskedPaths: MASKED_PATHS,
      readonlyPaths: READONLY_PATHS,
    },
  };
}

/** Of this command. What the whole sandbox may use, cpu time among it, is limited by the group above. */
function resources({ spec: { limits }, canLimitSwap }: ConfigFacts): object {
  const memory = { limit: limits.memoryBytes, ...(canLimitSwap ? { swap: limits.memoryBytes } : {}) };
  return {
    devices: [{ allow: false, access: "rwm" }],
    memory,
    pids: { limit: limits.pids },
  };
}
