/**
 * Owns what the helper does with one container of an engine elsewhere, as the manager asks it, and the manager's half of
 * its model endpoint: connections the helper accepted, joined to the proxy here.
 */
import { encodePatch } from "../../../patch/codec.js";
import type { Patch } from "../../../patch/patch.js";
import type { SealReport, SealRequest } from "../../../sealing/types.js";
import { ModelRelay } from "../../relay.js";
import type { Network, NetworkProof, SandboxUser, Usage } from "../../types.js";
import type { HostedContainer, Look } from "../host/types.js";
import type { HelperLink } from "./helper-link.js";
import type { Asked, NetworkAsked, Operation } from "./wire.js";

type OperationOfSandbox = {
  [Name in Operation]: Asked<Name> extends { id: string } ? Name : never;
}[Operation];

export interface RemoteParts {
  readonly id: string;
  readonly link: HelperLink;
  /** What the helper is to be told of a network. */
  readonly told: (network: Network) => Promise<NetworkAsked>;
}

export class RemoteContainer implements HostedContainer {
  readonly lost: Promise<string>;
  readonly hostRoot = undefined;
  readonly #parts: RemoteParts;
  #relay: ModelRelay | undefined;
  /** Of relays that are closed. */
  #modelTimeMs = 0;
  #wasUnreachable = false;
  #isLost = false;
  #isClosed = false;

  constructor(parts: RemoteParts) {
    this.#parts = parts;
    this.lost = parts.link.lost;
    void parts.link.lost.then(() => {
      this.#isLost = true;
      return this.#closeRelay();
    });
  }

  /** A helper that is gone took the way to the proxy with it. */
  get isModelUnreachable(): boolean {
    if (this.#isLost && !this.#isClosed) return true;
    return this.#relay?.isUnreachable ?? this.#wasUnreachable;
  }

  get modelTimeMs(): number {
    return this.#modelTimeMs + (this.#relay?.modelTimeMs ?? 0);
  }

  /** A connection made inside. */
  join(connection: number): void {
    const inner = this.#parts.link.fetch(connection);
    inner?.on("error", () => inner.destroy());
    if (this.#relay === undefined) inner?.destroy();
    else if (inner !== undefined) this.#relay.join(inner);
  }

  /** Opens for a network that the helper is about to open inside. */
  async expect(network: Network): Promise<void> {
    await this.#closeRelay();
    if (network.kind !== "none") this.#relay = ModelRelay.carried(network);
  }

  async usage(): Promise<Usage> {
    return (await this.#ask("usage", {})).facts;
  }

  async seal(order: Pick<SealRequest, "workdir" | "answers">): Promise<SealReport> {
    return (await this.#ask("seal", { order })).facts;
  }

  async nDenied(): Promise<number> {
    return (await this.#ask("denied", {})).facts.n;
  }

  async look(pid: number | undefined): Promise<Look> {
    return (await this.#ask("look", pid === undefined ? {} : { pid })).facts;
  }

  async kill(root: number | undefined, isAlone: boolean): Promise<void> {
    await this.#ask("kill", { isAlone, ...(root === undefined ? {} : { root }) });
  }

  async setNetwork(network: Network): Promise<void> {
    const { told } = this.#parts;
    await this.expect(network);
    try {
      await this.#ask("setNetwork", await told(network));
    } catch (error) {
      await this.#closeRelay();
      throw error;
    }
  }

  async proveNetwork(): Promise<NetworkProof> {
    return (await this.#ask("proveNetwork", {})).facts;
  }

  async closeNetwork(): Promise<void> {
    this.#isClosed = true;
    await this.#closeRelay();
    // A helper that is gone has closed it.
    if (!this.#isLost) await this.#ask("closeNetwork", {}).catch(() => undefined);
  }

  async putTar(directory: string, tar: Uint8Array, owner: SandboxUser): Promise<void> {
    await this.#ask("putTar", { directory, owner }, tar);
  }

  async getTar(directory: string): Promise<Uint8Array> {
    return (await this.#ask("getTar", { directory })).bytes;
  }

  async addAgentAccount(): Promise<void> {
    await this.#ask("addAgentAccount", {});
  }

  async apply(patch: Patch, workdir: string): Promise<void> {
    await this.#ask("apply", { workdir }, await encodePatch(patch));
  }

  #ask<Name extends OperationOfSandbox>(name: Name, asked: Omit<Asked<Name>, "id">, bytes?: Uint8Array) {
    const whole = { ...asked, id: this.#parts.id } as Asked<Name>;
    return this.#parts.link.ask(name, whole, bytes);
  }

  async #closeRelay(): Promise<void> {
    const relay = this.#relay;
    this.#relay = undefined;
    if (relay === undefined) return;
    this.#wasUnreachable = relay.isUnreachable;
    this.#modelTimeMs += relay.modelTimeMs;
    await relay.close();
  }
}
