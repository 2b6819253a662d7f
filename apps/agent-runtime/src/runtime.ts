/**
 * Owns the wiring of an agent runtime: place, invocations, front, drain. Decides nothing about invocations.
 */
import { type AgentRuntimeConfig, MortiseError } from "@mortise/contracts";
import { createLog, type Log, systemClock } from "@mortise/kernel";
import { Front } from "./front/server.js";
import { Invocations } from "./invocation/invocations.js";
import { selectPlace } from "./place/select-place.js";
import type { PlaceProvider } from "./place/types.js";

/** Results that were just reached are still on their way out. */
const ANSWERING_MS = 5_000;

export class AgentRuntime {
  readonly #config: AgentRuntimeConfig;
  readonly #places: PlaceProvider;
  readonly #invocations: Invocations;
  readonly #front: Front;
  readonly #log: Log;

  private constructor(
    config: AgentRuntimeConfig,
    parts: { places: PlaceProvider; invocations: Invocations; front: Front; log: Log },
  ) {
    this.#config = config;
    this.#places = parts.places;
    this.#invocations = parts.invocations;
    this.#front = parts.front;
    this.#log = parts.log;
  }

  /** @throws MortiseError for a configuration or a machine it cannot work with */
  static async start(config: AgentRuntimeConfig): Promise<AgentRuntime> {
    assertHarness(config);
    const log = createLog({ service: "agent-runtime", level: config.logLevel });
    const places = await selectPlace(config, log);
    try {
      const invocations = new Invocations({
        places,
        prepareTimeoutMs: config.limits.prepareTimeoutMs,
        limits: config.limits,
        clock: systemClock,
        log,
      });
      const front = await Front.start({ config, invocations, log });
      void places.prepareHarnesses();
      const harnesses = Object.keys(config.harness);
      log.info({ event: "runtime.ready", url: front.url, place: places.kind, harnesses, pid: process.pid });
      return new AgentRuntime(config, { places, invocations, front, log });
    } catch (error) {
      await places.close();
      throw error;
    }
  }

  /** Begins nothing more, lets what runs end in time, cancels the rest; its callers still hear the result. */
  async stop(): Promise<void> {
    this.#log.info({ event: "runtime.draining", running: this.#invocations.nRunning });
    await this.#invocations.drain(this.#config.limits.drainMs);
    await this.#front.close(ANSWERING_MS);
    await this.#places.close();
  }
}

function assertHarness({ harness }: AgentRuntimeConfig): void {
  if (Object.keys(harness).length > 0) return;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: "harness: this runtime has none, and could run nothing.",
    fix: 'Add a table such as [harness.mini] with adapter = "mini".',
    detail: { field: "harness" },
  });
}
