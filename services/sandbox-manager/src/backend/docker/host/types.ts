/**
 * Owns the words for what is done where an engine's containers run, beyond what its API offers: seeing their
 * processes, entering their namespaces, handing in files. Does not do any of it; see local-host.ts for an engine of
 * this host and ../remote/ for one elsewhere.
 */
import type { Patch } from "../../../patch/patch.js";
import type { Mount, Network, NetworkProof, Sandbox, SandboxUser, Usage } from "../../types.js";

/** A file or directory of the engine's host and where it is shown. */
export interface Shown {
  readonly source: string;
  readonly target: string;
}

export interface EngineHost {
  /** Ready for sandboxes; nothing of an earlier owner is left. @returns how many directories that were */
  start(): Promise<number>;
  /** Where the engine finds what a mount of a sandbox shows, until `close`. Rejects with MORTISE_SANDBOX_SETUP. */
  shown(id: string, mount: Mount): Promise<Shown>;
  /** Makes the files a sandbox has outside its container. @returns those shown below /etc */
  open(id: string): Promise<readonly Shown[]>;
  /** Takes over a container that was started for an opened sandbox. Rejects when it does not idle. */
  adopt(id: string, container: StartedContainer, network: Network): Promise<HostedContainer>;
  /** Removes what `open` made, and ends what `adopt` did. Idempotent; never rejects for a host that was lost. */
  close(id: string): Promise<void>;
  stop(): Promise<void>;
}

export interface StartedContainer {
  readonly containerId: string;
  /** Its first process, as the engine numbers it. */
  readonly pid: number;
  /** Where the engine's storage driver shows its own file system alone, on the engine's host; not every driver does. */
  readonly merged?: string;
}

/** What a look at a command says. */
export interface Look {
  /** Nothing runs in the container that was not there at its start. */
  readonly isIdle: boolean;
  /** The process asked about runs. */
  readonly isAlive: boolean;
}

export interface HostedContainer {
  /** Settles with the reason when its host can no longer be reached; its network has ended then. */
  readonly lost: Promise<string>;
  /** Its own file system as a directory of this host; undefined elsewhere. */
  readonly hostRoot: string | undefined;
  /** See `Sandbox.seal`; only elsewhere. */
  readonly seal?: NonNullable<Sandbox["seal"]>;
  readonly isModelUnreachable: boolean;
  /** Milliseconds. */
  readonly modelTimeMs: number;
  /** Counters of the whole container since its start; empty once it has ended. */
  usage(): Promise<Usage>;
  /** Attempts to reach what is closed. */
  nDenied(): Promise<number>;
  look(pid: number | undefined): Promise<Look>;
  /**
   * Kills a command's processes. Precondition: the container is frozen, so that none can start another in between.
   * @param root its own process, when it is known: without more knowledge only that one's descendants are its own
   * @param isAlone whether no other command runs
   */
  kill(root: number | undefined, isAlone: boolean): Promise<void>;
  /** As `Sandbox.setNetwork`. */
  setNetwork(network: Network): Promise<void>;
  proveNetwork(): Promise<NetworkProof>;
  /** Ends every connection and what is open inside. Idempotent. */
  closeNetwork(): Promise<void>;
  putTar(directory: string, tar: Uint8Array, owner: SandboxUser): Promise<void>;
  getTar(directory: string): Promise<Uint8Array>;
  /** Gives the agent's user a name where the image has none. */
  addAgentAccount(): Promise<void>;
  /** What is written belongs to whom the workspace belongs. */
  apply(patch: Patch, workdir: string): Promise<void>;
}
