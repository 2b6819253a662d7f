/** Owns the view of which service instances are live, as the presence bucket tells it. Does not ask them anything. */
import { SERVICE_NAMES, type ServiceName } from "@mortise/contracts";
import { type Bus, type ServicePresence, sleep, watchServices } from "@mortise/kernel";

const LOOK_INTERVAL_MS = 50;

export class Presences {
  readonly #live = new Map<ServiceName, readonly ServicePresence[]>();
  readonly #watches: { stop(): Promise<void> }[] = [];

  /** Resolves when who is live now is known. */
  static async watch(bus: Bus): Promise<Presences> {
    const presences = new Presences();
    for (const service of SERVICE_NAMES) {
      const watch = await watchServices(bus, service, (instances) => presences.#live.set(service, instances));
      presences.#watches.push(watch);
      await watch.caughtUp;
    }
    return presences;
  }

  all(): ServicePresence[] {
    return [...this.#live.values()].flat();
  }

  /** The instance started last: after a restart the dead one stays listed until its entry expires. */
  newest(service: ServiceName): ServicePresence | undefined {
    return [...(this.#live.get(service) ?? [])].sort((a, b) => b.startedAt - a.startedAt)[0];
  }

  /** Resolves when each of the services is present as one of these processes; rejects with the signal's reason. */
  async awaitProcesses(
    services: readonly ServiceName[],
    pidOf: (name: string) => number | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const isPresent = (service: ServiceName) =>
      this.all().some((entry) => entry.service === service && entry.pid === pidOf(service));
    while (!services.every(isPresent)) await sleep(LOOK_INTERVAL_MS, undefined, signal);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.stop()));
  }
}
