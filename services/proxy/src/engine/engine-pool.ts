/**
 * Owns one run's turns over several engines: which engine gets which session, and which engines may get any.
 * Is an engine itself, so that nobody else knows. Does not start or stop servers.
 *
 * P1  An engine is given turns only under weights it has acknowledged: those of its own status. One that failed
 *     to take new weights goes on with its older ones, which spans and staleness show, and is asked again.
 * P2  A session stays with its engine, whose cache holds its context, as long as that engine serves; a new
 *     session goes to the engine with the fewest turns.
 */
import { MortiseError } from "@mortise/contracts";
import { type Clock, type Log, sleep } from "@mortise/kernel";
import type {
  Engine,
  EngineCapabilities,
  EngineStatus,
  Generated,
  GenerateRequest,
  LoadedWeights,
} from "./types.js";

/** Sessions whose engine is remembered; the oldest is forgotten, and costs one context computed anew. */
const MAX_SESSIONS = 65_536;
/** How often an engine that failed to take weights is asked again. */
const RELOAD_MS = 5000;

type NewWeights = LoadedWeights & { readonly safetensors: Uint8Array };

export interface PoolOptions {
  readonly id: string;
  readonly members: readonly Engine[];
  readonly log: Log;
  readonly clock: Clock;
}

export class EnginePool implements Engine {
  readonly id: string;
  readonly capabilities: EngineCapabilities;
  private readonly options: PoolOptions;
  private readonly homes = new Map<string, Engine>();
  private readonly closing = new AbortController();
  /** Aborted when newer weights come: nobody is asked to take older ones any more. */
  private superseded = new AbortController();

  constructor(options: PoolOptions) {
    this.id = options.id;
    this.options = options;
    this.capabilities = sharedBy(options.members.map(({ capabilities }) => capabilities));
  }

  async generate(request: GenerateRequest): Promise<Generated> {
    const engine = this.engineFor(request.affinity);
    return { ...(await engine.generate(request)), engine: engine.id };
  }

  /** Resolves once one engine has the weights: from then on turns can be sampled under them. */
  async loadWeights(weights: NewWeights): Promise<void> {
    this.superseded.abort();
    this.superseded = new AbortController();
    const signal = AbortSignal.any([this.superseded.signal, this.closing.signal]);
    const loads = this.options.members.map((member) =>
      member.loadWeights(weights).catch((error: unknown) => {
        void this.keepAsking(member, weights, signal);
        throw error;
      }),
    );
    try {
      await Promise.any(loads);
    } catch (error) {
      throw (error as AggregateError).errors[0];
    }
  }

  /** The newest weights that any engine has. */
  status(): EngineStatus {
    const all = this.options.members.map((member) => member.status());
    const sum = (of: (status: EngineStatus) => number) => all.reduce((total, one) => total + of(one), 0);
    const newest = all.reduce<LoadedWeights | undefined>(
      (best, { loaded }) => (loaded && (!best || loaded.version > best.version) ? loaded : best),
      undefined,
    );
    return {
      isServing: all.some(({ isServing, loaded }) => isServing && loaded !== undefined),
      loaded: newest,
      activeTurns: sum((one) => one.activeTurns),
      computeCpuMs: sum((one) => one.computeCpuMs),
      sampledTokens: sum((one) => one.sampledTokens),
    };
  }

  async close(): Promise<void> {
    this.closing.abort();
    await Promise.all(this.options.members.map((member) => member.close()));
  }

  /** P1, P2 */
  private engineFor(affinity: string): Engine {
    const home = this.homes.get(affinity);
    const engine = home && isRoutable(home) ? home : this.leastLoaded();
    this.homes.delete(affinity);
    this.homes.set(affinity, engine);
    if (this.homes.size > MAX_SESSIONS) this.homes.delete(this.homes.keys().next().value!);
    return engine;
  }

  /** Of equals the one with the fewest sessions at home, so that sessions that begin together spread. */
  private leastLoaded(): Engine {
    const routable = this.options.members.filter(isRoutable);
    if (routable.length === 0)
      throw new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: `No engine of ${this.id} serves.` });
    const sessions = new Map<Engine, number>();
    for (const home of this.homes.values()) sessions.set(home, (sessions.get(home) ?? 0) + 1);
    const load = (engine: Engine) => [engine.status().activeTurns, sessions.get(engine) ?? 0] as const;
    return routable.reduce((best, engine) => {
      const [[turns, homes], [bestTurns, bestHomes]] = [load(engine), load(best)];
      return turns < bestTurns || (turns === bestTurns && homes < bestHomes) ? engine : best;
    });
  }

  private async keepAsking(member: Engine, weights: NewWeights, signal: AbortSignal): Promise<void> {
    const { log, clock } = this.options;
    while (!signal.aborted) {
      log.warn({ event: "engine.lags", engine: member.id, version: weights.version });
      await sleep(RELOAD_MS, clock, signal).catch(() => {});
      if (signal.aborted) return;
      const isLoaded = await member.loadWeights(weights).then(
        () => true,
        () => false,
      );
      if (isLoaded) return;
    }
  }
}

function isRoutable(engine: Engine): boolean {
  const { isServing, loaded } = engine.status();
  return isServing && loaded !== undefined;
}

/** What every member can do. */
function sharedBy(all: readonly EngineCapabilities[]): EngineCapabilities {
  const rank = { processed: 2, raw: 1, none: 0 };
  const bounds = all.flatMap(({ maxTokens }) => (maxTokens === undefined ? [] : [maxTokens]));
  return {
    tokenIds: true,
    logProbabilities: all
      .map((one) => one.logProbabilities)
      .reduce((least, one) => (rank[one] < rank[least] ? one : least)),
    routedExperts: all.every((one) => one.routedExperts),
    weightVersions: all.every((one) => one.weightVersions),
    pauseResume: all.every((one) => one.pauseResume),
    weightUpdates: all.every((one) => one.weightUpdates),
    maxTokens: bounds.length === 0 ? undefined : Math.min(...bounds),
  };
}
