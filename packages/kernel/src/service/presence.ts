/**
 * Owns how services find each other: one entry per live instance in a KV bucket whose entries expire.
 * Does not check that an instance answers; a caller that cannot reach one tries another.
 */
import { PRESENCE_TTL_MS, subjectToken } from "@mortise/contracts";
import type { Bus } from "../bus/bus.js";
import type { Kv } from "../bus/kv.js";
import type { Following } from "../bus/types.js";
import type { Log } from "../log.js";
import type { ServicePresence } from "./types.js";

const BUCKET = "presence";

/** The live instances of a service, in order of instance name. */
export async function findServices(bus: Bus, service: string): Promise<ServicePresence[]> {
  const entries = await (await bus.kv(BUCKET)).entries(`${service}.*`);
  const found = [...entries.values()].map(({ value }) => parse(value));
  return found.sort(byInstance);
}

/** Calls `onChange` with the live instances now and whenever they change. */
export async function watchServices(
  bus: Bus,
  service: string,
  onChange: (instances: readonly ServicePresence[]) => void,
): Promise<Following> {
  const live = new Map<string, { presence: ServicePresence; text: string }>();
  const kv = await bus.kv(BUCKET);
  return kv.watch(`${service}.*`, (key, entry) => {
    const text = entry === undefined ? undefined : new TextDecoder().decode(entry.value);
    if (live.get(key)?.text === text) return; // a renewal says nothing new
    if (text === undefined) live.delete(key);
    else live.set(key, { presence: JSON.parse(text), text });
    onChange([...live.values()].map(({ presence }) => presence).sort(byInstance));
  });
}

/** Keeps this instance's entry alive until it is withdrawn. */
export class Presence {
  readonly #kv: Kv;
  readonly #key: string;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #entry: ServicePresence;
  #writing: Promise<void> = Promise.resolve();

  private constructor(kv: Kv, entry: ServicePresence, log: Log) {
    this.#kv = kv;
    this.#entry = entry;
    this.#log = log;
    this.#key = `${subjectToken("service", entry.service)}.${subjectToken("instance", entry.instance)}`;
    this.#timer = setInterval(() => this.#renew(), PRESENCE_TTL_MS / 3);
  }

  static async announce(bus: Bus, entry: ServicePresence): Promise<Presence> {
    const presence = new Presence(await bus.kv(BUCKET), entry, bus.log);
    await presence.#write();
    return presence;
  }

  /** Adds facts, for example that the instance is draining. */
  async amend(facts: Readonly<Record<string, string>>): Promise<void> {
    this.#entry = { ...this.#entry, facts: { ...this.#entry.facts, ...facts } };
    await this.#write();
  }

  async withdraw(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    await this.#kv.delete(this.#key);
  }

  async #write(): Promise<void> {
    await this.#kv.put(this.#key, new TextEncoder().encode(JSON.stringify(this.#entry)));
  }

  #renew(): void {
    this.#writing = this.#writing
      .then(() => this.#write())
      .catch((error: unknown) => this.#log.warn({ event: "presence.not-renewed", err: error }));
  }
}

function parse(value: Uint8Array): ServicePresence {
  return JSON.parse(new TextDecoder().decode(value));
}

function byInstance(a: ServicePresence, b: ServicePresence): number {
  return a.instance < b.instance ? -1 : 1;
}
