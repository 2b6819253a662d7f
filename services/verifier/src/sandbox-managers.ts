/**
 * Owns the list of live sandbox-managers, whose turn it is, and asking on when one dies over a question.
 * Does not start sandboxes itself.
 *
 * M1  A manager that is gone is no result: each run is a fresh sandbox, so the question is asked again, of the
 *     next manager or of the same one restarted. Deliveries of the work item are not spent on an outage.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  MortiseError,
  PRESENCE_TTL_MS,
  type RunOnceRequestSchema,
  type RunOnceResponse,
  SandboxService,
} from "@mortise/contracts";
import {
  backoff,
  type Client,
  dispositionOf,
  rpcClient,
  type ServiceContext,
  type ServicePresence,
  sleep,
  watchServices,
} from "@mortise/kernel";

type Manager = Client<typeof SandboxService>;

/** A dead manager is listed until its presence expires; a new one on a busy machine takes about as long again. */
const PATIENCE_MS = 4 * PRESENCE_TTL_MS;
const RETRY = { baseMs: 200, maxMs: 2_000 };

/** Round-robin over the managers that are present; a manager that vanishes is dropped with its connection. */
export class SandboxManagers {
  readonly #clients = new Map<string, Manager>();
  readonly #context: ServiceContext;
  #turn = 0;
  #stop: () => Promise<void> = async () => {};

  private constructor(context: ServiceContext) {
    this.#context = context;
  }

  static async watch(context: ServiceContext): Promise<SandboxManagers> {
    const managers = new SandboxManagers(context);
    const watch = await watchServices(context.bus, "sandbox-manager", (present) => managers.#update(present));
    managers.#stop = () => watch.stop();
    return managers;
  }

  get count(): number {
    return this.#clients.size;
  }

  /**
   * One command in a fresh sandbox, at whichever manager answers (M1).
   * @throws MORTISE_TRANSPORT_UNAVAILABLE (retry) when none answered for PATIENCE_MS, and what a manager refuses
   */
  async runOnce(
    request: MessageInitShape<typeof RunOnceRequestSchema>,
    options: { readonly deadlineMs: number; readonly signal: AbortSignal },
  ): Promise<RunOnceResponse> {
    const { clock, log } = this.#context;
    const { signal } = options;
    const since = clock.now();
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#next().runOnce(request, options);
      } catch (error) {
        const isGone = dispositionOf(error) === "retry" || wasCut(error);
        if (!isGone || signal.aborted || clock.now() - since > PATIENCE_MS) throw error;
        log.warn({ event: "sandbox-manager.unanswered", trial: request.trial, attempt, err: error });
      }
      await sleep(backoff(attempt, RETRY), clock, signal);
    }
  }

  #next(): Manager {
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
        this.#clients.set(address, rpcClient(SandboxService, address, { bearer: this.#context.bearer }));
  }
}

/** The connection to a manager that vanished is closed under its calls. */
function wasCut(error: unknown): boolean {
  return error instanceof MortiseError && error.code === "MORTISE_TRANSPORT_CANCELLED";
}
