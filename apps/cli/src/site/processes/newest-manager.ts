/**
 * Owns a connection to the sandbox-manager that was started last: a restarted one has another address.
 * Does not try again when a call fails (sandbox-executor.ts).
 */
import { SandboxService } from "@mortise/contracts";
import { type Client, rpcClient } from "@mortise/kernel";
import type { Presences } from "./presences.js";

export class NewestManager {
  readonly #presences: Presences;
  readonly #bearer: string;
  readonly #clients = new Map<string, Client<typeof SandboxService>>();

  constructor(presences: Presences, bearer: string) {
    this.#presences = presences;
    this.#bearer = bearer;
  }

  client(): Client<typeof SandboxService> {
    const address = this.#presences.newest("sandbox-manager")?.rpcAddress ?? "";
    const client = this.#clients.get(address) ?? rpcClient(SandboxService, address, { bearer: this.#bearer });
    this.#clients.set(address, client);
    return client;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }
}
