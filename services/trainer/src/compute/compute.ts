/**
 * Owns the service's handle on the compute thread: requests, progress, and the CPU time spent there.
 * Does not compute. A thread that ends by itself is a fault of every open request.
 */
import { Worker } from "node:worker_threads";
import { isErrorCode, MortiseError } from "@mortise/contracts";
import type {
  Answers,
  ComputeSetup,
  FromWorker,
  PlainError,
  Request,
  WarmStartProgress,
} from "./messages.js";

interface Open {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export interface Backend {
  readonly name: string;
  readonly parameters: number;
}

export interface ComputeEvents {
  onProgress(progress: WarmStartProgress): void;
  /** Told once: why steps go without an independent rescoring. */
  onIndependentAbsent(reason: string): void;
}

export class Compute {
  readonly #worker: Worker;
  readonly #open = new Map<number, Open>();
  readonly #events: ComputeEvents;
  readonly #ready = Promise.withResolvers<Backend>();
  #nextId = 1;
  #cpuMs = 0;
  #ended: MortiseError | undefined;

  constructor(setup: ComputeSetup, events: ComputeEvents) {
    this.#events = events;
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), { workerData: setup });
    this.#worker.on("message", (message: FromWorker) => this.#receive(message));
    this.#worker.on("error", (error) => this.#end(error.message, error));
    this.#worker.on("exit", (code) => this.#end(`it exited with code ${code}`));
    // Whoever needs the backend awaits `ready()`; without one the failure reaches the first request too.
    this.#ready.promise.catch(() => undefined);
  }

  /** CPU milliseconds the thread had spent at its last message. */
  get cpuMs(): number {
    return this.#cpuMs;
  }

  /** Resolves when the checkpoint is open and the model exists. @throws MortiseError why it could not be. */
  ready(): Promise<Backend> {
    return this.#ready.promise;
  }

  /** @throws MortiseError as the thread threw it, or MORTISE_TRAINER_COMPUTE when the thread is gone. */
  ask<K extends Request["kind"]>(request: Extract<Request, { kind: K }>): Promise<Answers[K]> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve: (value) => resolve(value as Answers[K]), reject });
      this.#worker.postMessage({ id, request });
    });
  }

  async stop(): Promise<void> {
    this.#ended ??= gone("it was stopped");
    await this.#worker.terminate();
  }

  #receive(message: FromWorker): void {
    if (message.kind === "ready") {
      this.#ready.resolve({ name: message.backend, parameters: message.parameters });
      return;
    }
    if (message.kind === "independent-absent") {
      this.#events.onIndependentAbsent(message.reason);
      return;
    }
    this.#cpuMs = message.cpuMs;
    if (message.kind === "progress") {
      this.#events.onProgress(message.progress);
      return;
    }
    if (message.kind === "failed") this.#ready.reject(restored(message.error));
    const open = this.#open.get(message.id);
    this.#open.delete(message.id);
    if (message.kind === "answer") open?.resolve(message.value);
    else open?.reject(restored(message.error));
  }

  #end(reason: string, cause?: unknown): void {
    this.#ended ??= gone(reason, cause);
    this.#ready.reject(this.#ended);
    for (const open of this.#open.values()) open.reject(this.#ended);
    this.#open.clear();
  }
}

function gone(reason: string, cause?: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRAINER_COMPUTE",
    message: `The compute thread is gone: ${reason}.`,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** The error as it was in the thread, with the thread's stack as cause. */
function restored({ code, fix, message, stack }: PlainError): MortiseError {
  const cause = Object.assign(new Error(message), stack === undefined ? {} : { stack });
  return new MortiseError({
    code: isErrorCode(code) ? code : "MORTISE_TRAINER_COMPUTE",
    message,
    cause,
    ...(fix === undefined ? {} : { fix }),
  });
}
