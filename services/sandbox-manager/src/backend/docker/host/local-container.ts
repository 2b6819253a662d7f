/**
 * Owns what this host does with one container of an engine of this host: its processes, its network namespace, its
 * files below its root as this host sees it. Does not speak to the engine.
 */
import { existsSync, lstatSync } from "node:fs";
import { applyToDirectory } from "../../../patch/apply.js";
import type { Patch } from "../../../patch/patch.js";
import * as files from "../../files.js";
import type { SandboxNetwork } from "../../network/index.js";
import type { EtcFiles } from "../../runc/etc-files.js";
import { type Network, type NetworkProof, type SandboxUser, USER_IDS, type Usage } from "../../types.js";
import { addAgentAccount } from "./agent-account.js";
import type { HostProcesses } from "./processes.js";
import type { HostedContainer, Look, StartedContainer } from "./types.js";

export interface LocalParts {
  readonly started: StartedContainer;
  readonly processes: HostProcesses;
  readonly network: SandboxNetwork;
  readonly etc: EtcFiles;
}

export class LocalContainer implements HostedContainer {
  /** This host is where we are. */
  readonly lost = new Promise<never>(() => undefined);
  readonly hostRoot: string | undefined;
  /** Everything mounted in it included. */
  readonly #liveRoot: string;
  readonly #parts: LocalParts;

  constructor(parts: LocalParts) {
    this.#parts = parts;
    const { pid, merged } = parts.started;
    this.#liveRoot = `/proc/${pid}/root`;
    this.hostRoot = merged !== undefined && existsSync(merged) ? merged : undefined;
  }

  get isModelUnreachable(): boolean {
    return this.#parts.network.isModelUnreachable;
  }

  get modelTimeMs(): number {
    return this.#parts.network.modelTimeMs;
  }

  async usage(): Promise<Usage> {
    return this.#parts.processes.usage();
  }

  async nDenied(): Promise<number> {
    return this.#parts.network.nDenied;
  }

  async look(pid: number | undefined): Promise<Look> {
    return this.#parts.processes.look(pid);
  }

  async kill(root: number | undefined, isAlone: boolean): Promise<void> {
    this.#parts.processes.kill(root, isAlone);
  }

  async setNetwork(asked: Network): Promise<void> {
    const { network, etc } = this.#parts;
    try {
      await network.set(asked);
    } finally {
      etc.setHosts(network.knownHosts);
    }
  }

  proveNetwork(): Promise<NetworkProof> {
    return this.#parts.network.prove();
  }

  closeNetwork(): Promise<void> {
    return this.#parts.network.close();
  }

  /** The engine's own way in would write below scratch volumes, where nobody sees it. */
  async putTar(directory: string, tar: Uint8Array, owner: SandboxUser): Promise<void> {
    await files.unpackBelow(this.#liveRoot, directory, tar, USER_IDS[owner]);
  }

  getTar(directory: string): Promise<Uint8Array> {
    return files.packBelow(this.#liveRoot, directory);
  }

  async addAgentAccount(): Promise<void> {
    addAgentAccount(this.#liveRoot);
  }

  async apply(patch: Patch, workdir: string): Promise<void> {
    const workspace = files.resolveDirectory(this.#liveRoot, workdir.slice(1));
    const { uid, gid } = lstatSync(workspace);
    applyToDirectory(patch, workspace, { uid, gid });
  }
}
