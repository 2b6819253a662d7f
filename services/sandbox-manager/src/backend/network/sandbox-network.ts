/**
 * Owns what one sandbox can reach, for every backend whose sandboxes have a network namespace this process can enter:
 * making it, replacing it while commands run, showing that it is as asked, and counting what was refused.
 * Does not know backends, trials or what the proxy is.
 *
 * N1  The namespace has no interface but loopback, up to its end. Nothing is closed by a rule: what is not opened has
 *     no way out. A failed change leaves it that way.
 * N2  What is open is a listener inside and a relay in this process: the model endpoint, and one for the addresses of
 *     an allow-list, which become the loopback's own. So a change of policy cuts every connection made before it.
 */
import { closeSync, readFileSync } from "node:fs";
import net from "node:net";
import { MortiseError } from "@mortise/contracts";
import { ModelRelay } from "../relay.js";
import { createNetworkNamespace, withinNetworkNamespace } from "../runc/syscalls.js";
import { MODEL_PORT, type ModelAddress, type Network, type NetworkProof } from "../types.js";
import { type AllowedHost, type AllowedHostRules, resolveAllowedHosts } from "./allowed-hosts.js";
import { type ProbeTarget, probeNamespace } from "./egress-probe.js";
import { type AllowedAddresses, EgressRelay } from "./egress-relay.js";
import { addLoopbackAddress, removeLoopbackAddress } from "./loopback-address.js";
import { listenOn, portOf } from "./sockets.js";
import { steer, stopSteering } from "./steering.js";

const MODEL_PLACE = { host: "127.0.0.1", port: MODEL_PORT };
/** Any port of an allowed host leads to the relay; this one is tried. Nothing is sent. */
const ALLOWED_PROBE_PORT = 443;

/** What is open besides nothing. */
interface Openings {
  readonly model?: ModelEndpoint;
  readonly egress?: EgressRelay;
  readonly hosts: readonly AllowedHost[];
}

const NOTHING: Openings = { hosts: [] };

/** What joins connections made to the model's place inside to the proxy. */
export type ModelEndpoint = Pick<ModelRelay, "isUnreachable" | "modelTimeMs" | "close">;
/** Takes over the listening socket there, as a descriptor. */
export type OpenModel = (listenerFd: number, upstream: ModelAddress) => Promise<ModelEndpoint>;

const openRelay: OpenModel = (listenerFd, upstream) => ModelRelay.adopt(listenerFd, upstream);

export class SandboxNetwork {
  readonly #rules: AllowedHostRules;
  readonly #openModel: OpenModel;
  #namespaceFd: number | undefined;
  #network: Network = { kind: "none" };
  #openings: Openings = NOTHING;
  /** Changes happen one after another. */
  #last: Promise<void> = Promise.resolve();
  #isModelUnreachable = false;
  /** Of relays that are closed. */
  #modelTimeMs = 0;
  /** Of relays that are closed. */
  #nDenied = 0;
  /** Our own probes were refused too. */
  #nProbesRefused = 0;
  #nRefused = 0;

  private constructor(namespaceFd: number, rules: AllowedHostRules, openModel: OpenModel) {
    this.#namespaceFd = namespaceFd;
    this.#rules = rules;
    this.#openModel = openModel;
  }

  /** Makes a namespace. Rejects with MORTISE_SANDBOX_NETWORK or _UNRESOLVED; nothing of it remains then. */
  static create(network: Network, rules: AllowedHostRules = {}): Promise<SandboxNetwork> {
    return SandboxNetwork.adopt(createNetworkNamespace(() => undefined).namespaceFd, network, rules);
  }

  /**
   * Takes over the descriptor of a namespace made elsewhere, in which nothing is up but loopback. As `create`.
   * @param openModel a relay of this process when absent
   */
  static async adopt(
    namespaceFd: number,
    network: Network,
    rules: AllowedHostRules = {},
    openModel: OpenModel = openRelay,
  ): Promise<SandboxNetwork> {
    const made = new SandboxNetwork(namespaceFd, rules, openModel);
    try {
      await made.set(network);
      return made;
    } catch (error) {
      await made.close();
      throw error;
    }
  }

  /** A path that names the namespace while this lives. Throws after `close`. */
  get namespacePath(): string {
    return `/proc/${process.pid}/fd/${this.#fd}`;
  }

  /** Names for the sandbox's /etc/hosts, and the addresses they stand for: there is no other way to look one up. */
  get knownHosts(): readonly AllowedHost[] {
    return this.#openings.hosts.filter(({ name }) => !net.isIPv4(name));
  }

  /** Whether the last attempt to reach the proxy behind the model endpoint failed; after `close` as it was then. */
  get isModelUnreachable(): boolean {
    return this.#openings.model?.isUnreachable ?? this.#isModelUnreachable;
  }

  /** Time in which at least one model request was open, milliseconds; of every network this one has been. */
  get modelTimeMs(): number {
    return this.#modelTimeMs + (this.#openings.model?.modelTimeMs ?? 0);
  }

  /** Attempts from inside to reach something that is closed. */
  get nDenied(): number {
    if (this.#namespaceFd !== undefined) this.#nRefused = refusals(this.#namespaceFd);
    const relayed = this.#nDenied + (this.#openings.egress?.nDenied ?? 0);
    return Math.max(0, this.#nRefused - this.#nProbesRefused) + relayed;
  }

  /** Closes what is open, then opens what is asked for (N2). When it rejects, everything is closed. */
  set(network: Network): Promise<void> {
    return this.#next(async () => {
      // Whatever is wrong with the new policy, the old one has ended.
      await this.#closeAll();
      const hosts =
        network.kind === "allow-list" ? await resolveAllowedHosts(network.allowedHosts, this.#rules) : [];
      try {
        await this.#open(network, hosts);
        this.#network = network;
      } catch (cause) {
        await this.#closeAll();
        if (cause instanceof MortiseError) throw cause;
        throw new MortiseError({ code: "MORTISE_SANDBOX_NETWORK", message: (cause as Error).message, cause });
      }
    });
  }

  /** Tries from inside what must and what must not be reachable. Rejects when that cannot be found out. */
  prove(): Promise<NetworkProof> {
    let proof: NetworkProof | undefined;
    return this.#next(async () => {
      const before = refusals(this.#fd);
      const allowed = new Set(addressesOf(this.#openings.hosts));
      const probes = await probeNamespace(this.#fd, this.#targets(allowed), allowed);
      this.#nProbesRefused += refusals(this.#fd) - before;
      proof = { isClosed: probes.every(({ expected, observed }) => expected === observed), probes };
    }).then(() => proof!);
  }

  /** Closes everything and lets the namespace go; it ends with its last process. Idempotent. */
  close(): Promise<void> {
    return this.#next(async () => {
      if (this.#namespaceFd === undefined) return;
      this.#nRefused = refusals(this.#namespaceFd);
      await this.#closeRelays();
      closeSync(this.#namespaceFd);
      this.#namespaceFd = undefined;
    });
  }

  get #fd(): number {
    if (this.#namespaceFd === undefined) throw new Error("the network of this sandbox is closed");
    return this.#namespaceFd;
  }

  #next(change: () => Promise<void>): Promise<void> {
    const done = this.#last.then(change);
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #open(network: Network, hosts: readonly AllowedHost[]): Promise<void> {
    if (network.kind === "none") return;
    const addresses = addressesOf(hosts);
    const egress = addresses.length === 0 ? {} : { egress: await this.#openEgress(addresses, hosts) };
    this.#openings = { hosts, ...egress };
    const listener = withinNetworkNamespace(this.#fd, () => listenOn(MODEL_PLACE));
    this.#openings = { ...this.#openings, model: await this.#openModel(listener, network) };
  }

  async #openEgress(addresses: readonly string[], hosts: readonly AllowedHost[]): Promise<EgressRelay> {
    // Known before the first address is: a failure half-way removes them all.
    this.#openings = { hosts };
    const { listener, port } = withinNetworkNamespace(this.#fd, () => {
      for (const address of addresses) addLoopbackAddress(address);
      const fd = listenOn({ host: "127.0.0.1", port: 0 }, { isTransparent: true });
      return { listener: fd, port: portOf(fd) };
    });
    try {
      await steer(this.#fd, { addresses, port });
    } catch (error) {
      closeSync(listener);
      throw error;
    }
    return EgressRelay.adopt(listener, namesByAddress(hosts));
  }

  async #closeAll(): Promise<void> {
    await this.#closeRelays();
    const addresses = addressesOf(this.#openings.hosts);
    this.#openings = NOTHING;
    this.#network = { kind: "none" };
    if (addresses.length === 0) return;
    await stopSteering(this.#fd);
    withinNetworkNamespace(this.#fd, () => {
      for (const address of addresses) removeIfThere(address);
    });
  }

  async #closeRelays(): Promise<void> {
    const { model, egress } = this.#openings;
    this.#isModelUnreachable = model?.isUnreachable ?? this.#isModelUnreachable;
    this.#modelTimeMs += model?.modelTimeMs ?? 0;
    this.#nDenied += egress?.nDenied ?? 0;
    this.#openings = { hosts: this.#openings.hosts };
    await Promise.all([model?.close(), egress?.close()]);
  }

  #targets(allowed: ReadonlySet<string>): ProbeTarget[] {
    const network = this.#network;
    const targets: ProbeTarget[] = [...allowed].map((host) => ({
      name: `allowed ${host}`,
      place: { host, port: ALLOWED_PROBE_PORT },
      protocol: "tcp",
      expected: "reachable",
    }));
    const expected = network.kind === "none" ? "unreachable" : "reachable";
    targets.unshift({ name: "model endpoint", place: MODEL_PLACE, protocol: "tcp", expected });
    // Seen from inside, a proxy at this very address of the host would be the endpoint itself.
    const isDirect =
      network.kind !== "none" &&
      net.isIP(network.host) !== 0 &&
      !(network.host === MODEL_PLACE.host && network.port === MODEL_PORT);
    if (isDirect) {
      const { host, port } = network;
      targets.push({
        name: "proxy directly",
        place: { host, port },
        protocol: "tcp",
        expected: "unreachable",
      });
    }
    return targets;
  }
}

function addressesOf(hosts: readonly AllowedHost[]): string[] {
  return [...new Set(hosts.flatMap(({ addresses }) => addresses))];
}

/** An address that a task names itself is allowed for every name. */
function namesByAddress(hosts: readonly AllowedHost[]): AllowedAddresses {
  const names = new Map<string, Set<string>>();
  for (const { name, addresses } of hosts)
    for (const address of addresses) names.set(address, (names.get(address) ?? new Set()).add(name));
  for (const { name } of hosts) if (net.isIPv4(name)) names.set(name, new Set());
  return names;
}

function removeIfThere(address: string): void {
  try {
    removeLoopbackAddress(address);
  } catch (error) {
    // Setting it up had failed before it came to this one.
    if ((error as { code?: string }).code !== "EADDRNOTAVAIL") throw error;
  }
}

/** Packets the kernel had no route for: without one, every attempt to leave ends there and is counted. */
function refusals(namespaceFd: number): number {
  return withinNetworkNamespace(namespaceFd, () => {
    const [names = [], values = []] = readFileSync("/proc/thread-self/net/snmp", "utf8")
      .split("\n")
      .filter((line) => line.startsWith("Ip:"))
      .map((line) => line.split(" "));
    const v4 = Number(values[names.indexOf("OutNoRoutes")] ?? 0);
    const v6 = /^Ip6OutNoRoutes\s+(\d+)$/m.exec(readIfThere("/proc/thread-self/net/snmp6"))?.[1] ?? 0;
    return v4 + Number(v6);
  });
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
