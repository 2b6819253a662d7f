/**
 * Owns what one pod can reach: nothing, and the model through the relay's stream. Shows that it is so.
 *
 * N1  The pod's interfaces were taken down before anything of the task was there (pod-spec.ts, P1). What is opened is
 *     a listener on its loopback, so a change of policy cuts every connection made before it.
 */
import net from "node:net";
import { MortiseError } from "@mortise/contracts";
import { closed, DNS_QUERY, type ProbeTarget, probed } from "../network/egress-probe.js";
import { MODEL_PORT, type Network, type NetworkProof } from "../types.js";
import { refusalsOf } from "./counters.js";
import type { HelperTarget, PodHelper } from "./helper.js";
import { ModelTunnel } from "./tunnel.js";

const KUBELET_PORT = 10250;

export interface PodNetworkFacts {
  /** In the container that shares nothing but the network. */
  readonly relay: PodHelper;
  /** Where the agent is. */
  readonly sandbox: PodHelper;
  /** Addresses of the node and of the API server: they exist, and listen. */
  readonly closed: readonly { readonly name: string; readonly host: string; readonly port: number }[];
}

export class PodNetwork {
  readonly #facts: PodNetworkFacts;
  #network: Network = { kind: "none" };
  #tunnel: ModelTunnel | undefined;
  #last: Promise<void> = Promise.resolve();
  #isModelUnreachable = false;
  /** Of tunnels that are closed. */
  #modelTimeMs = 0;
  /** Our own probes were refused too. */
  #nProbesRefused = 0;

  constructor(facts: PodNetworkFacts) {
    this.#facts = facts;
  }

  get isModelUnreachable(): boolean {
    return this.#tunnel?.isUnreachable ?? this.#isModelUnreachable;
  }

  get modelTimeMs(): number {
    return this.#modelTimeMs + (this.#tunnel?.modelTimeMs ?? 0);
  }

  /** @param counters as the helper reads them in the pod */
  nDenied(counters: Readonly<Record<string, string>>): number | undefined {
    const refused = refusalsOf(counters);
    return refused === undefined ? undefined : Math.max(0, refused - this.#nProbesRefused);
  }

  /** Closes what is open, then opens what is asked for (N1). When it rejects, everything is closed. */
  set(network: Network): Promise<void> {
    return this.#next(async () => {
      await this.#closeTunnel();
      if (network.kind === "allow-list") throw noAllowList();
      if (network.kind === "model") this.#tunnel = await ModelTunnel.open(this.#facts.relay, network);
      this.#network = network;
    });
  }

  close(): Promise<void> {
    return this.#next(() => this.#closeTunnel());
  }

  prove(): Promise<NetworkProof> {
    return this.#next(async () => {
      const before = await this.#refused();
      const probes = await probed(this.#targets(), new Set(), async (all) => {
        const targets = all.map(asHelperTarget);
        const { states = [], interfaces = ["unknown"] } = await this.#facts.sandbox.ask({
          operation: "probe",
          targets,
        });
        return { states, interfaces };
      });
      this.#nProbesRefused += (await this.#refused()) - before;
      return { isClosed: probes.every(({ expected, observed }) => expected === observed), probes };
    });
  }

  async #refused(): Promise<number> {
    const { counters = {} } = await this.#facts.sandbox.ask({ operation: "counters" });
    return refusalsOf(counters) ?? 0;
  }

  async #closeTunnel(): Promise<void> {
    const tunnel = this.#tunnel;
    this.#tunnel = undefined;
    this.#network = { kind: "none" };
    if (tunnel === undefined) return;
    this.#isModelUnreachable = tunnel.isUnreachable;
    await tunnel.close();
    this.#modelTimeMs += tunnel.modelTimeMs;
  }

  #targets(): ProbeTarget[] {
    const network = this.#network;
    const model: ProbeTarget = {
      name: "model endpoint",
      place: { host: "127.0.0.1", port: MODEL_PORT },
      protocol: "tcp",
      expected: network.kind === "none" ? "unreachable" : "reachable",
    };
    const ofCluster = this.#facts.closed
      .filter(({ host }) => net.isIP(host) !== 0)
      .map(({ name, host, port }) => closed(name, { host, port }));
    const isDirect =
      network.kind !== "none" &&
      net.isIP(network.host) !== 0 &&
      !(network.host === "127.0.0.1" && network.port === MODEL_PORT);
    if (!isDirect) return [model, ...ofCluster];
    return [model, closed("proxy directly", { host: network.host, port: network.port }), ...ofCluster];
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }
}

/** What besides the pod's own network is in a cluster, for `PodNetworkFacts.closed`. */
export function clusterPlaces(server: string, node: string | undefined): PodNetworkFacts["closed"] {
  const { hostname, port, protocol } = new URL(server);
  const host = hostname.replace(/^\[|\]$/g, "");
  const api = { name: "API server", host, port: Number(port || (protocol === "https:" ? 443 : 80)) };
  const inside = process.env.KUBERNETES_SERVICE_HOST;
  return [
    api,
    ...(inside === undefined
      ? []
      : [
          {
            name: "API server inside",
            host: inside,
            port: Number(process.env.KUBERNETES_SERVICE_PORT ?? 443),
          },
        ]),
    ...(node === undefined ? [] : [{ name: "kubelet of the node", host: node, port: KUBELET_PORT }]),
  ];
}

function asHelperTarget({ place, protocol }: ProbeTarget): HelperTarget {
  const where =
    "abstractName" in place ? { abstract: place.abstractName } : { host: place.host, port: place.port };
  return { ...where, protocol, ...(protocol === "udp" ? { datagram: DNS_QUERY.toString("hex") } : {}) };
}

function noAllowList(): MortiseError {
  return new MortiseError({
    code: "MORTISE_SANDBOX_NETWORK",
    message:
      "the kubernetes backend opens nothing but the model: a pod has no way to the hosts of an allow-list.",
    fix: "Run tasks with allowed_hosts on the runc or docker backend.",
  });
}
