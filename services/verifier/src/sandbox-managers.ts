/**
 * Owns the list of live sandbox-managers and whose turn it is. Does not start sandboxes itself.
 */
import { MortiseError, SandboxService } from "@mortise/contracts";
import { type Bus, type Client, rpcClient, type ServicePresence, watchServices } from "@mortise/kernel";

type Manager = Client<typeof SandboxService>;

/** Round-robin over the managers that are present; a manager that vanishes is dropped with its connection. */
export class SandboxManagers {
  readonly #clients = new Map<string, Manager>();
  readonly #bearer: string;
  #turn = 0;
  #stop: () => Promise<void> = async () => {};

  private constructor(bearer: string) {
    this.#bearer = bearer;
  }

  static async watch(bus: Bus, bearer: string): Promise<SandboxManagers> {
    const managers = new SandboxManagers(bearer);
    const watch = await watchServices(bus, "sandbox-manager", (present) => managers.#update(present));
    managers.#stop = () => watch.stop();
    return managers;
  }

  get count(): number {
    return this.#clients.size;
  }

  /** @throws MORTISE_TRANSPORT_UNAVAILABLE (retry) when none is present */
  next(): Manager {
    const clients = [...this.#clients.values()];
    const client = clients[this.#turn++ % Math.max(1, clients.length)];
    if (client === undefined)
      throw new MortiseError({
        code: "MORTISE_TRANSPORT_UNAVAILABLE",
        message: "no sandbox-manager is present",
      });
    return client;
  }

  async close(): Promise<void> {
    await this.#stop();
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }

  #update(present: readonly ServicePresence[]): void {
    const addresses = new Set(present.map((service) => service.rpcAddress));
    for (const [address, client] of this.#clients)
      if (!addresses.has(address)) {
        client.close();
        this.#clients.delete(address);
      }
    for (const address of addresses)
      if (!this.#clients.has(address))
        this.#clients.set(address, rpcClient(SandboxService, address, { bearer: this.#bearer }));
  }
}
