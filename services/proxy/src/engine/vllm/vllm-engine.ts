/**
 * Owns one vLLM server as an engine: token ids in, token ids out, over HTTP. The server is started and kept by
 * the operator; what it can do is measured when it is opened. Its text is never read.
 *
 * V1  A turn is asked under the cache salt of the weights loaded then, so that no prefix of other weights is
 *     reused; turns in flight at a swap go on and their spans say so (C9).
 * V2  Tokens under a label nobody announced are refused: somebody else changed the weights.
 * V3  After a swap that failed nothing is sampled until one succeeds.
 * V4  A server that failed a turn is asked for its health until it has it, and given the weights it should have:
 *     one that was restarted has those it started with.
 */
import { createHash } from "node:crypto";
import type { EngineConfig } from "@mortise/contracts";
import { MortiseError } from "@mortise/contracts";
import { backoff, type Clock, type Log, sleep } from "@mortise/kernel";
import type { Checkpoint } from "@mortise/policy";
import type {
  Engine,
  EngineCapabilities,
  EngineStatus,
  Generated,
  GenerateRequest,
  LoadedWeights,
} from "../types.js";
import { type Probed, probe } from "./probe.js";
import { VllmServer } from "./server.js";
import { TurnInTheMaking } from "./turn.js";
import {
  cannotUpdate,
  canProveChanges,
  currentLabel,
  isCheckpoint,
  labelOf,
  type NewWeights,
  type SharedWeights,
  shareWeights,
  swapWeights,
} from "./weights.js";
import { readPiece } from "./wire.js";

export interface VllmOptions {
  readonly id: string;
  readonly run: string;
  readonly url: string;
  readonly settings: Extract<EngineConfig, { kind: "vllm" }>;
  readonly checkpoint: Checkpoint;
  readonly key: string | undefined;
  readonly log: Log;
  readonly clock: Clock;
}

/** A server that restarts is away for minutes; one connection that broke, for nothing. */
const RECOVERY_WAIT = { baseMs: 250, maxMs: 10_000 };

export class VllmEngine implements Engine {
  readonly id: string;
  readonly capabilities: EngineCapabilities;
  private readonly options: VllmOptions;
  private readonly server: VllmServer;
  private readonly probed: Probed;
  /** Policy version of every label this engine announced, or found and was told of. */
  private readonly labels = new Map<string, number>();
  private loaded: LoadedWeights | undefined;
  private salt: string | undefined;
  /** Where the loaded weights lie, when they came through the shared directory. */
  private shared: SharedWeights | undefined;
  private recovery: Promise<void> | undefined;
  private readonly closing = new AbortController();
  /** The last change of the server's weights: one at a time. */
  private changes: Promise<unknown> = Promise.resolve();
  private active = 0;
  private sampledTokens = 0;

  private constructor(options: VllmOptions, server: VllmServer, probed: Probed, weightUpdates: boolean) {
    this.options = options;
    this.server = server;
    this.probed = probed;
    this.id = options.id;
    this.capabilities = { ...probed.capabilities, weightUpdates };
  }

  /** @throws MortiseError when the server does not answer, serves another model, or gives no token ids */
  static async open(options: VllmOptions): Promise<VllmEngine> {
    const { stallTimeoutMs, model } = options.settings;
    const server = new VllmServer({ url: options.url, key: options.key, stallTimeoutMs });
    try {
      const probed = await probe(server, model);
      const { version, wire, label } = probed;
      options.log.info({
        event: "vllm.probed",
        url: server.url,
        version,
        route: wire.path,
        label: label ?? null,
      });
      const isShared = probed.hasControl && options.settings.weightsDirectory !== undefined;
      const weightUpdates = isShared && (await canProveChanges(server));
      return new VllmEngine(options, server, probed, weightUpdates);
    } catch (error) {
      server.close();
      throw error;
    }
  }

  async generate(request: GenerateRequest): Promise<Generated> {
    const { loaded } = this;
    if (!loaded)
      throw new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "vLLM has no weights of ours." });
    const turn = new TurnInTheMaking(request);
    this.active++;
    let generated: Generated;
    try {
      await this.stream(request, turn);
      generated = turn.end({
        askedUnder: loaded.version,
        versionOf: (label) => this.labels.get(label),
        mayHaveLogProbabilities: this.hasLogProbabilitiesAt(request.temperature),
      });
    } catch (error) {
      this.recovery ??= this.recover();
      throw error;
    } finally {
      this.active--;
    }
    // Who aborts hangs up, and learns no spans: of tokens from before and after a swap none can be told.
    if (generated.finish === "abort" && this.loaded !== loaded) throw request.signal.reason;
    this.sampledTokens += generated.ids.length;
    return generated;
  }

  /** New weights go through a shared directory; without one only those the server was started with are taken. */
  loadWeights(weights: NewWeights): Promise<void> {
    return this.inTurn(() => this.load(weights));
  }

  private async load(weights: NewWeights): Promise<void> {
    const { run, checkpoint, settings } = this.options;
    const { version, sha256 } = weights;
    if (!this.capabilities.weightUpdates) {
      if (version !== 0 || !isCheckpoint(checkpoint, weights.safetensors)) throw cannotUpdate(version);
      this.accept(weights, this.probed.label);
      return;
    }
    const label = labelOf(run, weights);
    const path = await shareWeights(settings.weightsDirectory!, run, checkpoint, weights);
    const shared = { path, label, isOriginal: isCheckpoint(checkpoint, weights.safetensors) };
    // Turns in flight report the new label before this function knows; new ones wait at the server meanwhile.
    this.labels.set(label, version);
    try {
      await swapWeights(this.server, shared);
    } catch (error) {
      if (this.loaded && !(await this.stillServes(this.loaded))) this.loaded = undefined;
      throw error;
    }
    this.shared = shared;
    this.accept({ version, sha256 }, label);
  }

  status(): EngineStatus {
    const { loaded, active, sampledTokens } = this;
    const isServing = this.recovery === undefined;
    return { isServing, loaded, activeTurns: active, computeCpuMs: 0, sampledTokens };
  }

  async close(): Promise<void> {
    this.closing.abort();
    await this.recovery;
    this.server.close();
  }

  /** V4. Ends when the server serves what it should, or the engine is closed. */
  private async recover(): Promise<void> {
    const { log, clock } = this.options;
    const { signal } = this.closing;
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        const health = await this.server.get("health");
        if (health.status !== 200) throw this.server.refused("health", health);
        await this.inTurn(() => this.restore());
        break;
      } catch (err) {
        log.warn({ event: "vllm.away", url: this.server.url, attempt, err });
        await sleep(backoff(attempt, RECOVERY_WAIT), clock, signal).catch(() => {});
      }
    }
    this.recovery = undefined;
  }

  private async restore(): Promise<void> {
    if (this.shared) await swapWeights(this.server, this.shared);
  }

  private inTurn(change: () => Promise<void>): Promise<void> {
    const done = this.changes.then(change);
    this.changes = done.catch(() => {});
    return done;
  }

  private async stream(request: GenerateRequest, turn: TurnInTheMaking): Promise<void> {
    const { wire, model } = this.probed;
    const asked = {
      request,
      model,
      cacheSalt: this.salt,
      seed: seedOf(request),
      alternatives: 0,
      echoesContext: false,
    };
    const headers = wire.headers(asked);
    try {
      const { signal } = request;
      for await (const event of this.server.events(wire.path, wire.body(asked), { headers, signal }))
        turn.add(readPiece(this.server, wire, event));
    } catch (error) {
      if (!request.signal.aborted) throw error;
    }
  }

  /** Numbers from before temperature are those sampled from only where temperature changes nothing. */
  private hasLogProbabilitiesAt(temperature: number): boolean {
    const { logProbabilities } = this.capabilities;
    return logProbabilities === "processed" || (logProbabilities === "raw" && temperature === 1);
  }

  private accept({ version, sha256 }: LoadedWeights, label: string | undefined): void {
    if (label !== undefined) this.labels.set(label, version);
    this.loaded = { version, sha256 };
    this.salt = labelOf(this.options.run, { version, sha256 });
  }

  private async stillServes(weights: LoadedWeights): Promise<boolean> {
    const label = await currentLabel(this.server).catch(() => undefined);
    return label !== undefined && label === labelOf(this.options.run, weights);
  }
}

/** The server's noise comes from this number: same key and turn, same seed. Below 2^48, exact in JSON. */
function seedOf({ rngKey, turnIndex }: GenerateRequest): number {
  return createHash("sha256").update(`${rngKey}/${turnIndex}`).digest().readUIntBE(0, 6);
}
