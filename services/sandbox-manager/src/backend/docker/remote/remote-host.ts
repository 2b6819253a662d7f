/**
 * Owns the host of an engine elsewhere as the backend uses it: a helper there, started when it is needed and again when
 * it was lost, directories brought to it, containers handed to it.
 *
 * R1  A helper that is lost takes its sandboxes with it: their commands are lost, nothing of theirs goes on silently.
 */
import { MortiseError } from "@mortise/contracts";
import type Docker from "dockerode";
import type { AllowedHostRules } from "../../network/index.js";
import type { Mount, Network } from "../../types.js";
import { ignoreMissing } from "../engine.js";
import type { EngineHost, Shown, StartedContainer } from "../host/types.js";
import type { DockerImages } from "../images.js";
import { Delivery } from "./delivery.js";
import { type HelperContainer, SHARED, startHelper } from "./helper-container.js";
import { HelperLink } from "./helper-link.js";
import { RemoteContainer } from "./remote-container.js";
import type { ConnectionMade, NetworkAsked } from "./wire.js";

export interface RemoteHostOptions {
  readonly docker: Docker;
  readonly owner: string;
  readonly images: DockerImages;
  readonly allowedHosts: AllowedHostRules;
  readonly warn: (message: string) => void;
}

interface Helper {
  readonly container: Docker.Container;
  readonly link: HelperLink;
  readonly delivery: Delivery;
  /** Where the engine finds what the helper has at this path. */
  readonly placeOf: (inHelper: string) => string;
}

export class RemoteHost implements EngineHost {
  readonly #options: RemoteHostOptions;
  readonly #containers = new Map<string, RemoteContainer>();
  #helper: Promise<Helper> | undefined;
  #isStopping = false;

  constructor(options: RemoteHostOptions) {
    this.#options = options;
  }

  async start(): Promise<number> {
    await this.#ready();
    return 0;
  }

  async shown(id: string, mount: Mount): Promise<Shown> {
    const { delivery, placeOf } = await this.#ready();
    const name = await delivery.bring(mount, id);
    return { source: placeOf(`${SHARED}/shown/${name}`), target: mount.target };
  }

  async open(id: string): Promise<readonly Shown[]> {
    const { link, placeOf } = await this.#ready();
    const { facts } = await link.ask("open", { id });
    return facts.shown.map(({ source, target }) => ({ source: placeOf(source), target }));
  }

  async adopt(id: string, started: StartedContainer, network: Network): Promise<RemoteContainer> {
    const { link } = await this.#ready();
    const told = (asked: Network) => this.#told(asked);
    const container = new RemoteContainer({ id, link, told });
    await container.expect(network);
    this.#containers.set(id, container);
    await link.ask("adopt", { id, started, ...(await told(network)) });
    return container;
  }

  async close(id: string): Promise<void> {
    const container = this.#containers.get(id);
    this.#containers.delete(id);
    await container?.closeNetwork();
    const helper = await this.#helper?.catch(() => undefined);
    helper?.delivery.release(id);
    await helper?.link.ask("close", { id }).catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    const helper = await this.#helper?.catch(() => undefined);
    this.#helper = undefined;
    helper?.link.close();
    await helper?.container.remove({ force: true, v: true }).catch(ignoreMissing);
  }

  /** One helper at a time. */
  #ready(): Promise<Helper> {
    this.#helper ??= this.#started().catch((error) => {
      this.#helper = undefined;
      throw error;
    });
    return this.#helper;
  }

  async #started(): Promise<Helper> {
    const { docker, owner, images, warn } = this.#options;
    const image = images.engineImageOf(await images.prepare({ kind: "host" })).name;
    let running: HelperContainer | undefined;
    try {
      running = await startHelper(docker, owner, image);
      const { container, streams, mountpoint } = running;
      const link = await HelperLink.open(streams, (made) => this.#join(made));
      await this.#greet(link);
      void link.lost.then((why) => {
        if (this.#isStopping) return;
        warn(
          `the helper at the Docker engine was lost with its sandboxes: ${why} ${running?.errors() ?? ""}`.trim(),
        );
        this.#helper = undefined;
        void container.remove({ force: true, v: true }).catch(() => undefined);
      });
      return {
        container,
        link,
        delivery: deliveryTo(container, link),
        placeOf: (inHelper) => mountpoint + inHelper.slice(SHARED.length),
      };
    } catch (cause) {
      await running?.container.remove({ force: true, v: true }).catch(() => undefined);
      if (cause instanceof MortiseError) throw cause;
      const words = [(cause as Error).message, running?.errors()].filter(Boolean).join(" ");
      throw new MortiseError({
        code: "MORTISE_SANDBOX_BACKEND",
        message: `sandbox.docker.host: the helper that a remote engine needs does not run there: ${words}`,
        fix: "Allow the engine a container with the host's process and network namespaces, or use an engine of this host.",
        cause,
      });
    }
  }

  async #greet(link: HelperLink): Promise<void> {
    const { privateHosts = [], resolve } = this.#options.allowedHosts;
    const { facts } = await link.ask("hello", { privateHosts, resolves: resolve !== undefined });
    if (facts.problem !== undefined) throw new Error(facts.problem);
  }

  #join({ connection, id }: ConnectionMade): void {
    this.#containers.get(id)?.join(connection);
  }

  async #told(network: Network): Promise<NetworkAsked> {
    if (network.kind === "none") return { network };
    const { listenerKey: _, ...rest } = network;
    const { resolve } = this.#options.allowedHosts;
    if (rest.kind === "model" || resolve === undefined) return { network: rest };
    const found = rest.allowedHosts.map(async (name) => [name, await resolve(name).catch(() => [])] as const);
    return { network: rest, addresses: Object.fromEntries(await Promise.all(found)) };
  }
}

function deliveryTo(container: Docker.Container, link: HelperLink): Delivery {
  return new Delivery({
    receive: async (name) => (await link.ask("receive", { name })).facts.incoming,
    put: async (archive, directory) => {
      await container.putArchive(archive, { path: directory });
    },
    received: async (name, incoming) => {
      await link.ask("received", { name, incoming });
    },
  });
}
