/**
 * Owns the embedded engine: worker threads that decode, which turn is at which, and their CPU time. All time
 * of a worker is model compute; this thread only passes ids. A worker that dies fails its turns and is
 * replaced with the same weights.
 */
import { Worker } from "node:worker_threads";
import { MortiseError } from "@mortise/contracts";
import type { Log } from "@mortise/kernel";
import type {
  Engine,
  EngineCapabilities,
  EngineStatus,
  Generated,
  GenerateRequest,
  LoadedWeights,
} from "./types.js";
import type { FromWorker, ToWorker, TurnResult, WorkerStart } from "./worker-messages.js";

const WORKER_FILE = new URL("./embedded-worker.js", import.meta.url);

export interface EmbeddedOptions extends WorkerStart {
  readonly id: string;
  readonly workers: number;
  readonly log: Log;
}

interface Waiting {
  readonly request: GenerateRequest;
  streamed: number;
  /** Takes the abort listener off the request's signal. */
  leave(): void;
  resolve(generated: Generated): void;
  reject(error: MortiseError): void;
}

export class EmbeddedEngine implements Engine {
  readonly id: string;
  readonly capabilities: EngineCapabilities;
  private readonly options: EmbeddedOptions;
  private readonly threads: Thread[];
  private loaded: LoadedWeights | undefined;
  private sampledTokens = 0;

  constructor(options: EmbeddedOptions) {
    this.id = options.id;
    this.capabilities = {
      tokenIds: true,
      logProbabilities: "processed",
      routedExperts: false,
      weightVersions: true,
      pauseResume: true,
      weightUpdates: true,
      maxTokens: options.config.maxPositions,
    };
    this.options = options;
    this.threads = Array.from({ length: options.workers }, () => new Thread(options));
  }

  async generate(request: GenerateRequest): Promise<Generated> {
    const generated = await this.threadFor(request.affinity).generate(request);
    this.sampledTokens += generated.ids.length;
    return generated;
  }

  /** Workers take new weights one after the other, so that at any time the others go on sampling. */
  async loadWeights(weights: LoadedWeights & { readonly safetensors: Uint8Array }): Promise<void> {
    const shared = new SharedArrayBuffer(weights.safetensors.byteLength);
    new Uint8Array(shared).set(weights.safetensors);
    for (const thread of this.threads) await thread.load(weights.version, shared);
    this.loaded = { version: weights.version, sha256: weights.sha256 };
  }

  status(): EngineStatus {
    return {
      isServing: true,
      loaded: this.loaded,
      activeTurns: this.threads.reduce((sum, thread) => sum + thread.activeTurns, 0),
      computeCpuMs: this.threads.reduce((sum, thread) => sum + thread.computeCpuMs, 0),
      sampledTokens: this.sampledTokens,
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.threads.map((thread) => thread.close()));
  }

  /** Trials of a group share their prompt, but spreading them keeps every worker busy: sessions stick, groups do not. */
  private threadFor(affinity: string): Thread {
    let hash = 0;
    for (let at = 0; at < affinity.length; at++) hash = (hash * 31 + affinity.charCodeAt(at)) >>> 0;
    return this.threads[hash % this.options.workers]!;
  }
}

class Thread {
  private readonly options: EmbeddedOptions;
  private readonly waiting = new Map<number, Waiting>();
  private loading: { version: number; resolve(): void; reject(error: MortiseError): void } | undefined;
  private weights: { version: number; shared: SharedArrayBuffer } | undefined;
  private worker: Worker;
  private nextTicket = 0;
  private isClosed = false;
  /** CPU of workers that ended, and of the present one. */
  private pastCpuMs = 0;
  private presentCpuMs = 0;

  constructor(options: EmbeddedOptions) {
    this.options = options;
    this.worker = this.spawn();
  }

  get activeTurns(): number {
    return this.waiting.size;
  }

  get computeCpuMs(): number {
    return this.pastCpuMs + this.presentCpuMs;
  }

  generate(request: GenerateRequest): Promise<Generated> {
    const ticket = this.nextTicket++;
    const abort = () => this.send({ kind: "abort", ticket });
    const { signal } = request;
    return new Promise<Generated>((resolve, reject) => {
      const leave = () => signal.removeEventListener("abort", abort);
      this.waiting.set(ticket, { request, streamed: 0, leave, resolve, reject });
      this.send(generateMessage(ticket, request));
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    });
  }

  load(version: number, shared: SharedArrayBuffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.loading = { version, resolve, reject };
      this.weights = { version, shared };
      this.send({ kind: "weights", version, safetensors: shared });
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.worker.terminate();
  }

  private spawn(): Worker {
    const { config, maxBatch, cacheTokens } = this.options;
    const worker = new Worker(WORKER_FILE, {
      workerData: { config, maxBatch, cacheTokens } satisfies WorkerStart,
    });
    worker.on("message", (message: FromWorker) => this.receive(message));
    worker.on("error", (error) => this.options.log.error({ event: "engine.worker-failed", err: error }));
    worker.on("exit", () => this.replace());
    return worker;
  }

  private replace(): void {
    this.pastCpuMs += this.presentCpuMs;
    this.presentCpuMs = 0;
    const failure = engineFailure("the worker thread ended");
    for (const ticket of [...this.waiting.keys()]) this.take(ticket)?.reject(failure);
    this.loading?.reject(failure);
    this.loading = undefined;
    if (this.isClosed) return;
    this.worker = this.spawn();
    if (this.weights)
      this.send({ kind: "weights", version: this.weights.version, safetensors: this.weights.shared });
  }

  private receive(message: FromWorker): void {
    switch (message.kind) {
      case "progress":
        this.presentCpuMs = message.computeCpuMs;
        for (const { ticket, ids } of message.streamed) this.stream(ticket, ids);
        for (const result of message.ended) this.end(result);
        return;
      case "refused":
        this.take(message.ticket)?.reject(engineFailure(message.reason));
        return;
      case "loaded":
        if (this.loading?.version !== message.version) return;
        this.loading.resolve();
        this.loading = undefined;
        return;
      case "not-loaded":
        this.loading?.reject(engineFailure(`version ${message.version}: ${message.reason}`));
        this.loading = undefined;
    }
  }

  private stream(ticket: number, ids: readonly number[]): void {
    const turn = this.waiting.get(ticket);
    if (!turn) return;
    turn.streamed += ids.length;
    turn.request.onIds?.(ids);
  }

  private end(result: TurnResult): void {
    const turn = this.take(result.ticket);
    if (!turn) return;
    if (turn.streamed < result.ids.length) turn.request.onIds?.([...result.ids.subarray(turn.streamed)]);
    const { ids, logProbabilities, spans, finish } = result;
    turn.resolve({ ids, logProbabilities, spans, finish });
  }

  private take(ticket: number): Waiting | undefined {
    const turn = this.waiting.get(ticket);
    this.waiting.delete(ticket);
    turn?.leave();
    return turn;
  }

  private send(message: ToWorker): void {
    this.worker.postMessage(message);
  }
}

function generateMessage(ticket: number, request: GenerateRequest): ToWorker {
  return {
    kind: "generate",
    ticket,
    contextIds: request.contextIds,
    maxTokens: request.maxTokens,
    temperature: request.temperature,
    stopIds: [...request.stopIds],
    rngKey: `${request.rngKey}/${request.turnIndex}`,
    isStream: request.onIds !== undefined,
  };
}

function engineFailure(reason: string): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: `Embedded engine: ${reason}.` });
}
