/**
 * Owns which instances of the other services are live, and gRPC connections to them.
 * Does not check that an instance answers: callers try the next one.
 */
import type { DescService } from "@bufbuild/protobuf";
import {
  type Bus,
  type Client,
  type Following,
  rpcClient,
  type ServicePresence,
  watchServices,
} from "@mortise/kernel";

const PEERS = ["proxy", "sandbox-manager", "verifier"] as const;
export type Peer = (typeof PEERS)[number];

export class Peers {
  readonly #live = new Map<Peer, readonly ServicePresence[]>();
  readonly #clients = new Map<string, { close(): void }>();
  readonly #bearer: string;
  readonly #watches: Following[] = [];
  #turn = 0;

  private constructor(bearer: string) {
    this.#bearer = bearer;
  }

  static async watch(bus: Bus, bearer: string): Promise<Peers> {
    const peers = new Peers(bearer);
    const watches = await Promise.all(
      PEERS.map((peer) => watchServices(bus, peer, (instances) => peers.#update(peer, instances))),
    );
    await Promise.all(watches.map(({ caughtUp }) => caughtUp));
    peers.#watches.push(...watches);
    return peers;
  }

  hasAny(peer: Peer): boolean {
    return this.#addresses(peer).length > 0;
  }

  /** The addresses of all instances. */
  all(peer: Peer): readonly string[] {
    return this.#addresses(peer);
  }

  isLive(peer: Peer, address: string): boolean {
    return this.#addresses(peer).includes(address);
  }

  /** The address of the instance whose turn it is, one that is not draining if there is any. */
  next(peer: Peer): string | undefined {
    const instances = this.#live.get(peer) ?? [];
    const staying = instances.filter(({ facts }) => facts.draining !== "true");
    const addresses = (staying.length > 0 ? staying : instances).map(({ rpcAddress }) => rpcAddress);
    return addresses[this.#turn++ % Math.max(1, addresses.length)];
  }

  client<S extends DescService>(service: S, address: string): Client<S> {
    const key = `${service.typeName}@${address}`;
    const known = this.#clients.get(key) ?? rpcClient(service, address, { bearer: this.#bearer });
    this.#clients.set(key, known);
    return known as Client<S>;
  }

  async close(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.stop()));
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  /** Connections to an address that is gone are closed; a call under way fails and its caller tries again. */
  #update(peer: Peer, instances: readonly ServicePresence[]): void {
    const before = this.#addresses(peer);
    this.#live.set(peer, instances);
    for (const address of before) {
      if (this.isLive(peer, address)) continue;
      for (const [key, client] of this.#clients) {
        if (!key.endsWith(`@${address}`)) continue;
        client.close();
        this.#clients.delete(key);
      }
    }
  }

  #addresses(peer: Peer): string[] {
    return (this.#live.get(peer) ?? []).map(({ rpcAddress }) => rpcAddress);
  }
}
