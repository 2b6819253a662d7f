/**
 * Owns the text of a site file of one machine: everything on loopback, with a word on each key. Does not decide what
 * is in it (init/, quickstart/site.ts) and is not what reads it (the kernel).
 */
import type { HarnessSettings } from "@mortise/contracts";
import { stringify } from "smol-toml";

export interface SiteFileFacts {
  /** Without a user: the identity files hold those. */
  readonly natsUrl: string;
  readonly identity: string;
  readonly state: string;
  /** Of Harbor task directories and index.json. */
  readonly tasksDirectory: string;
  readonly modelPort: number;
  readonly harness: Readonly<Record<string, HarnessSettings>>;
  readonly sandbox: {
    readonly backend: "runc" | "docker" | "process";
    readonly runc: string;
    /** The schema's defaults when absent. */
    readonly cpus?: number;
    readonly memoryBytes?: number;
  };
}

export function siteFileText(facts: SiteFileFacts): string {
  const { sandbox } = facts;
  return `# Where things are on this machine, for every run. All keys with their defaults: docs/reference/config.md.
# A key nobody knows is refused with the nearest one that exists.

[nats]
# The bus: where services look for it, and where its server is started when nats.conf lies beside this file.
${line("url", facts.natsUrl)}

[identity]
# One file per service: its NATS user and password, and the bearer of gRPC. Readable by you alone.
${line("directory", facts.identity)}

[state]
# What services keep: checkpoints, sandboxes, caches, the archive, logs.
${line("directory", facts.state)}

[tasks]
# Harbor task directories, and index.json with their digests and splits.
${line("directory", facts.tasksDirectory)}

[proxy]
# The model API on 127.0.0.1. The port stays the same, because sandboxes that run were told.
${line("port", facts.modelPort)}
# engineWorkers = 1          # embedded engine: threads that sample
# maxBatch = 64              # embedded engine: turns decoded together by one of them

[sandbox]
# runc, docker, or process, which isolates nothing: agents and tests run as you, with your network and files.
${line("backend", sandbox.backend)}
${line("runc", sandbox.runc)}
# At most so much for one sandbox, whatever its task asks for.
${sandbox.cpus === undefined ? "# cpus = 1" : line("cpus", sandbox.cpus)}
${sandbox.memoryBytes === undefined ? "# memoryBytes = 2147483648" : line("memoryBytes", sandbox.memoryBytes)}
# maxSandboxes = 256         # prepared or running at once
# publicHosts = []           # what agents of tasks with a public network can reach besides the model
# taskVariables = []         # variables of this machine that tasks may ask for as \${NAME}

[verifier]
# concurrency = 4            # trials graded at once

# What runs may name as rollout.harness. docs/harnesses.md
${stringify({ harness: facts.harness }).trim()}
`;
}

function line(key: string, value: string | number): string {
  return stringify({ [key]: value }).trim();
}
