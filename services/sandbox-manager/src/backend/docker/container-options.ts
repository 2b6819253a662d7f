/**
 * Owns how a container of ours is described to the engine: no network, no capabilities, filtered system calls,
 * limits, mounts, and the process that keeps it alive. Does not create it.
 */
import type Docker from "dockerode";
import { MASKED_PATHS, READONLY_PATHS } from "../runc/config.js";
import { HOST_NAME } from "../runc/etc-files.js";
import { seccompProfile } from "../runc/seccomp.js";
import type { SandboxSpec } from "../types.js";
import { OWNER_LABEL } from "./engine.js";
import { IDLE_SECONDS } from "./host/processes.js";
import type { Shown } from "./host/types.js";

/**
 * The first process of the PID namespace: no signal from inside reaches it, and it reaps what loses its parent.
 * `sleep` is tried once, or a shell without it would spin.
 */
const KEEP_ALIVE = `sleep 0 || exit 127; while :; do sleep ${IDLE_SECONDS}; done`;
/** The first process, its `sleep`, and the threads of the runtime's helper while it enters. */
const RESERVED_PIDS = 12;
/** Enough for a build tool; far below what would make the host run out. */
const MAX_OPEN_FILES = 4096;
/** The agent dies before any service of ours when the host itself runs out of memory. */
const OOM_SCORE_ADJ = 500;

export interface ContainerFacts {
  readonly spec: SandboxSpec;
  /** Name or id of the image at the engine. */
  readonly image: string;
  readonly owner: string;
  /** Of the specification, where the engine finds them. */
  readonly mounts: readonly Shown[];
  /** Files shown below /etc. */
  readonly etc: readonly Shown[];
}

/** Everything mounted is read-only. */
export function containerOptions(facts: ContainerFacts): Docker.ContainerCreateOptions {
  const { spec, image, owner, mounts, etc } = facts;
  const { limits, scratch = [] } = spec;
  return {
    Image: image,
    Hostname: HOST_NAME,
    Entrypoint: ["/bin/sh", "-c"],
    Cmd: [KEEP_ALIVE],
    User: "0:0",
    WorkingDir: "/",
    Healthcheck: { Test: ["NONE"] },
    Labels: { [OWNER_LABEL]: owner, "io.mortise.sandbox": spec.id },
    HostConfig: {
      NetworkMode: "none",
      CapDrop: ["ALL"],
      // The same policy as in runc sandboxes: the engine's own lets virtual machine sockets and tracing through.
      SecurityOpt: ["no-new-privileges", `seccomp=${JSON.stringify(seccompProfile(process.arch))}`],
      MaskedPaths: [...MASKED_PATHS, "/sys/firmware", "/sys/devices/virtual/powercap"],
      ReadonlyPaths: READONLY_PATHS,
      PidsLimit: limits.pids + RESERVED_PIDS,
      Memory: limits.memoryBytes,
      MemorySwap: limits.memoryBytes,
      NanoCpus: Math.round(limits.cpus * 1e9),
      OomScoreAdj: OOM_SCORE_ADJ,
      Ulimits: [
        { Name: "nofile", Soft: MAX_OPEN_FILES, Hard: MAX_OPEN_FILES },
        { Name: "core", Soft: 0, Hard: 0 },
      ],
      LogConfig: { Type: "none", Config: {} },
      // Ours last: nothing a task mounts can take the place of /etc/hosts.
      Mounts: [...mounts, ...etc].map(({ source, target }) => ({
        Type: "bind",
        Source: source,
        Target: target,
        ReadOnly: true,
      })),
      Tmpfs: Object.fromEntries(
        scratch.map(({ target, bytes }) => [target, `rw,exec,nosuid,nodev,size=${bytes},mode=1777`]),
      ),
    },
  };
}
