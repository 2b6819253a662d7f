/**
 * Owns the engine host that this process runs on: directories of sandboxes beside their containers, and containers as
 * they are taken over. Does not speak to the engine. In the helper of an engine elsewhere it is that host's.
 */
import { mkdirSync, openSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { sourceDirectory } from "../../mount-source.js";
import { type AllowedHostRules, type OpenModel, SandboxNetwork } from "../../network/index.js";
import type { CgroupHost } from "../../runc/cgroup.js";
import { EtcFiles } from "../../runc/etc-files.js";
import type { Mount, Network } from "../../types.js";
import { LocalContainer } from "./local-container.js";
import { HostProcesses } from "./processes.js";
import type { EngineHost, Shown, StartedContainer } from "./types.js";

export interface LocalHostOptions {
  /** For the few files of each sandbox that lie outside its container; emptied at start. */
  readonly runDirectory: string;
  readonly cgroups: CgroupHost;
  readonly allowedHosts: AllowedHostRules;
  /** What joins a sandbox to its model; this process itself when absent. */
  readonly openModel?: (id: string) => OpenModel;
}

interface Opened {
  readonly etc: EtcFiles;
  container?: LocalContainer;
}

export class LocalHost implements EngineHost {
  readonly #options: LocalHostOptions;
  readonly #opened = new Map<string, Opened>();

  constructor(options: LocalHostOptions) {
    this.#options = options;
  }

  async start(): Promise<number> {
    return this.#emptied();
  }

  async shown(_id: string, mount: Mount): Promise<Shown> {
    return { source: sourceDirectory(mount), target: mount.target };
  }

  async open(id: string): Promise<readonly Shown[]> {
    const directory = this.#directoryOf(id);
    mkdirSync(directory, { recursive: true, mode: 0o755 });
    const etc = new EtcFiles(path.join(directory, "etc"));
    this.#opened.set(id, { etc });
    return etc.mounts;
  }

  async adopt(id: string, started: StartedContainer, asked: Network): Promise<LocalContainer> {
    const opened = this.#opened.get(id);
    if (opened === undefined) throw new Error(`sandbox ${id} was not opened`);
    const { cgroups, allowedHosts, openModel } = this.#options;
    const processes = await HostProcesses.of(started, cgroups);
    const namespace = openSync(`/proc/${started.pid}/ns/net`, "r");
    const network = await SandboxNetwork.adopt(namespace, asked, allowedHosts, openModel?.(id));
    opened.etc.setHosts(network.knownHosts);
    opened.container = new LocalContainer({ started, processes, network, etc: opened.etc });
    return opened.container;
  }

  async close(id: string): Promise<void> {
    await this.#opened.get(id)?.container?.closeNetwork();
    this.#opened.delete(id);
    rmSync(this.#directoryOf(id), { recursive: true, force: true });
  }

  async stop(): Promise<void> {
    await Promise.allSettled([...this.#opened.keys()].map((id) => this.close(id)));
    this.#emptied();
  }

  #directoryOf(id: string): string {
    return path.join(this.#options.runDirectory, id);
  }

  #emptied(): number {
    const { runDirectory } = this.#options;
    mkdirSync(runDirectory, { recursive: true, mode: 0o755 });
    const directories = readdirSync(runDirectory).length;
    rmSync(runDirectory, { recursive: true, force: true });
    mkdirSync(runDirectory, { mode: 0o755 });
    return directories;
  }
}
