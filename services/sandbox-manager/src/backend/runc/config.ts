/**
 * Owns the OCI runtime configuration of one command in a runc sandbox: namespaces, mounts, limits, and the
 * privileges taken away. Does not write files or start anything.
 */
import { type Command, SANDBOX_UID, type SandboxSpec, WORKSPACE } from "../types.js";
import { seccompProfile } from "./seccomp.js";

const CPU_PERIOD_US = 100_000;
/** Enough for a build tool; far below what would make the host run out. */
const MAX_OPEN_FILES = 4096;
/** The agent dies before any service of ours when the host itself runs out of memory. */
const OOM_SCORE_ADJ = 500;
const NO_CAPABILITIES = { bounding: [], effective: [], inheritable: [], permitted: [], ambient: [] };

const MASKED_PATHS = [
  "/proc/acpi",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/proc/timer_list",
  "/proc/timer_stats",
];
const READONLY_PATHS = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

export interface ConfigFacts {
  readonly spec: SandboxSpec;
  readonly command: Command;
  /** The mounted overlay. */
  readonly root: string;
  /** Absolute in every hierarchy. */
  readonly cgroup: string;
  /** Namespace that holds the model listener; without it runc makes an empty one. */
  readonly networkNamespace?: string;
  readonly canLimitSwap: boolean;
}

export function runtimeConfig(facts: ConfigFacts): object {
  const { spec, command } = facts;
  return {
    ociVersion: "1.0.2",
    hostname: "sandbox",
    root: { path: facts.root, readonly: false },
    process: {
      terminal: false,
      user: { uid: SANDBOX_UID, gid: SANDBOX_UID },
      args: command.argv,
      env: Object.entries(command.environment).map(([name, value]) => `${name}=${value}`),
      cwd: command.cwd ?? WORKSPACE,
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
      ...spec.mounts.map(({ tree, target }) => ({
        destination: target,
        type: "bind",
        source: tree.directory,
        options: ["bind", "ro", "nosuid", "nodev"],
      })),
    ],
    linux: {
      cgroupsPath: facts.cgroup,
      namespaces: [
        ...["pid", "ipc", "uts", "mount"].map((type) => ({ type })),
        facts.networkNamespace === undefined
          ? { type: "network" }
          : { type: "network", path: facts.networkNamespace },
      ],
      resources: resources(facts),
      seccomp: seccompProfile(process.arch),
      maskedPaths: MASKED_PATHS,
      readonlyPaths: READONLY_PATHS,
    },
  };
}

function resources({ spec: { limits }, canLimitSwap }: ConfigFacts): object {
  const memory = { limit: limits.memoryBytes, ...(canLimitSwap ? { swap: limits.memoryBytes } : {}) };
  return {
    devices: [{ allow: false, access: "rwm" }],
    memory,
    cpu: { quota: Math.max(1000, Math.round(limits.cpus * CPU_PERIOD_US)), period: CPU_PERIOD_US },
    pids: { limit: limits.pids },
  };
}
