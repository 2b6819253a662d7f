/**
 * Owns telling sandbox-managers which tasks come next, so that images are there when trials need them. Said again only
 * when it changes; nobody waits for an answer, and a manager that does not hear it makes things ready later.
 */
import { SandboxService, type TaskRef } from "@mortise/contracts";
import { type Cancel, type Clock, fromUnknown, type Log } from "@mortise/kernel";
import type { Peers } from "./peers.js";

export interface PrewarmingOptions {
  readonly run: string;
  readonly harness: string;
  readonly peers: Pick<Peers, "all" | "client">;
  readonly clock: Clock;
  readonly log: Log;
  /** What comes next, now. */
  upcoming(): readonly Pick<TaskRef, "id" | "digest">[];
}

/** A look costs a few comparisons; what is said late is of no use. */
const LOOK_EVERY_MS = 200;
const CALL_MS = 5_000;

export class Prewarming {
  readonly #options: PrewarmingOptions;
  #said = "";
  #cancel: Cancel;

  constructor(options: PrewarmingOptions) {
    this.#options = options;
    this.#cancel = options.clock.after(0, () => this.#look());
  }

  stop(): void {
    this.#cancel();
  }

  #look(): void {
    const { peers, clock, upcoming } = this.#options;
    this.#cancel = clock.after(LOOK_EVERY_MS, () => this.#look());
    const tasks = upcoming();
    const addresses = peers.all("sandbox-manager");
    const word = JSON.stringify([addresses, tasks.map(({ id }) => id)]);
    if (word === this.#said) return;
    this.#said = word;
    for (const address of addresses) void this.#tell(address, tasks);
  }

  async #tell(address: string, tasks: readonly Pick<TaskRef, "id" | "digest">[]): Promise<void> {
    const { run, harness, peers, log } = this.#options;
    try {
      const request = { run, harness, tasks: [...tasks] };
      await peers.client(SandboxService, address).prewarm(request, { deadlineMs: CALL_MS });
    } catch (error) {
      const known = fromUnknown(error, "MORTISE_TRANSPORT_UNAVAILABLE", `sandbox-manager at ${address}`);
      log.debug({ event: "prewarm.unanswered", err: known });
    }
  }
}
