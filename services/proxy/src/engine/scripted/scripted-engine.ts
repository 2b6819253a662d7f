/**
 * Owns the engine that plays given replies: given ids, given log-probabilities, given timing, given failures.
 * The base of every test and benchmark without a model. Which reply answers which request is decided by a
 * queue (`play`) or by the caller's `choose`; script.ts makes a chooser of a file. Samples nothing.
 */
import { MortiseError } from "@mortise/contracts";
import { type Clock, sleep, systemClock } from "@mortise/kernel";
import type {
  Engine,
  EngineCapabilities,
  EngineStatus,
  Generated,
  GenerateRequest,
  LoadedWeights,
  RoutedExperts,
} from "../types.js";
import { VersionSpans } from "../version-spans.js";

export interface ScriptedReply {
  readonly ids: readonly number[];
  /** One per id, nats. Absent: −index/100. Null: the engine reports none (C10). */
  readonly logProbabilities?: readonly number[] | null;
  /** Milliseconds before the first id, and between ids; 0 gives all ids at once. */
  readonly firstTokenMs?: number;
  readonly tokenMs?: number;
  /** Ids given before waiting in `held` for `release`. */
  readonly holdAfter?: number;
  /** Ids given before the engine fails; 0 fails before the first. */
  readonly failAfter?: number;
  readonly routedExperts?: RoutedExperts;
}

/** A turn that waits for the test. Aborting the request releases it too. */
export interface HeldTurn {
  readonly request: GenerateRequest;
  release(): void;
}

/** The reply to a request; undefined fails the turn. `ordinal` counts the requests of this engine from 0. */
export type ChooseReply = (request: GenerateRequest, ordinal: number) => ScriptedReply | undefined;

export interface ScriptedOptions {
  readonly id?: string;
  readonly clock?: Clock;
  /** Asked when the queue of `play` is empty. */
  readonly choose?: ChooseReply;
  readonly capabilities?: Partial<EngineCapabilities>;
}

export class ScriptedEngine implements Engine {
  readonly id: string;
  readonly capabilities: EngineCapabilities;
  readonly held: HeldTurn[] = [];
  private readonly clock: Clock;
  private readonly choose: ChooseReply;
  private readonly queue: ScriptedReply[] = [];
  private loaded: LoadedWeights | undefined;
  private ordinal = 0;
  private active = 0;
  private sampledTokens = 0;

  constructor(options: ScriptedOptions = {}) {
    this.id = options.id ?? "scripted";
    this.clock = options.clock ?? systemClock;
    this.choose = options.choose ?? (() => undefined);
    this.capabilities = {
      tokenIds: true,
      logProbabilities: "processed",
      routedExperts: false,
      weightVersions: true,
      pauseResume: true,
      weightUpdates: true,
      maxTokens: undefined,
      ...options.capabilities,
    };
  }

  /** Queues replies; they answer the next requests, in order, before `choose` is asked. */
  play(...replies: readonly ScriptedReply[]): void {
    this.queue.push(...replies);
  }

  async generate(request: GenerateRequest): Promise<Generated> {
    const reply = this.queue.shift() ?? this.choose(request, this.ordinal);
    this.ordinal++;
    if (!reply) throw failure("no reply is left for this request");
    this.active++;
    try {
      const generated = await this.playReply(reply, request);
      this.sampledTokens += generated.ids.length;
      return generated;
    } finally {
      this.active--;
    }
  }

  async loadWeights(weights: LoadedWeights): Promise<void> {
    this.loaded = { version: weights.version, sha256: weights.sha256 };
  }

  status(): EngineStatus {
    const { loaded, active, sampledTokens } = this;
    return { isServing: true, loaded, activeTurns: active, computeCpuMs: 0, sampledTokens };
  }

  async close(): Promise<void> {}

  private async playReply(reply: ScriptedReply, request: GenerateRequest): Promise<Generated> {
    const ids = reply.ids.slice(0, request.maxTokens);
    const spans = new VersionSpans();
    let given = 0;
    const giveUpTo = (count: number) => {
      const end = Math.min(count, ids.length);
      if (end <= given) return;
      spans.add(end - given, this.version());
      request.onIds?.(ids.slice(given, end));
      given = end;
    };
    for (const pause of this.pausesOf(reply, request, ids.length)) {
      giveUpTo(pause.at);
      if (request.signal.aborted) break;
      await pause.wait();
    }
    const isAborted = request.signal.aborted;
    if (!isAborted) giveUpTo(reply.failAfter ?? ids.length);
    if (!isAborted && reply.failAfter !== undefined) throw failure(`failure after ${given} ids`);
    const isStopped = given > 0 && given === ids.length && request.stopIds.has(ids[given - 1]!);
    return {
      ids: Int32Array.from(ids.slice(0, given)),
      logProbabilities: logProbabilitiesOf(reply, given),
      spans: spans.list,
      finish: isAborted ? "abort" : isStopped ? "stop" : "length",
      routedExperts: reply.routedExperts,
    };
  }

  /** Where a reply waits, in order: at how many ids, and for what. */
  private *pausesOf(reply: ScriptedReply, request: GenerateRequest, total: number) {
    const last = Math.min(reply.failAfter ?? total, total);
    const timed = (ms: number) => async () => {
      await sleep(ms, this.clock, request.signal).catch(() => {});
    };
    const { firstTokenMs = 0, tokenMs = 0, holdAfter } = reply;
    if (firstTokenMs > 0) yield { at: 0, wait: timed(firstTokenMs) };
    for (let at = 0; at <= last; at++) {
      if (at > 0 && at < last && tokenMs > 0) yield { at, wait: timed(tokenMs) };
      if (at === holdAfter) yield { at, wait: () => this.hold(request) };
    }
  }

  private hold(request: GenerateRequest): Promise<void> {
    return new Promise((resolve) => {
      const held = {
        request,
        release: () => {
          const at = this.held.indexOf(held);
          if (at >= 0) this.held.splice(at, 1);
          request.signal.removeEventListener("abort", held.release);
          resolve();
        },
      };
      this.held.push(held);
      request.signal.addEventListener("abort", held.release, { once: true });
    });
  }

  private version(): number {
    if (!this.loaded) throw failure("no weights are loaded");
    return this.loaded.version;
  }
}

function logProbabilitiesOf(reply: ScriptedReply, given: number): Float32Array | undefined {
  const { logProbabilities } = reply;
  if (logProbabilities === null) return undefined;
  if (logProbabilities === undefined) return Float32Array.from({ length: given }, (_, at) => -at / 100);
  return Float32Array.from(logProbabilities.slice(0, given));
}

function failure(reason: string): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: `Scripted engine: ${reason}.` });
}
