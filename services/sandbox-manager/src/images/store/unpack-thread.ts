/**
 * Owns one unpacking thread and what is said to it: a layer at a time, bytes sent a bounded number of chunks ahead.
 * Does not decide which thread unpacks what.
 */
import { Worker } from "node:worker_threads";
import type { UnpackedLayer, UnpackOptions } from "../layer/unpack.js";
import { arrived, type FromWorker, type ToWorker } from "./worker-messages.js";

const WORKER_FILE = new URL("./unpack-worker.js", import.meta.url);
/** A thread that is told to stop closes its files; one that does not hear it in this time is ended with them open. */
const GRACE_MS = 5000;
/** Chunks on their way to the thread: at 64 KiB each, a megabyte. */
const WINDOW = 16;

export class UnpackThread {
  // Node cannot track descriptors that system calls of ours open; unpacking closes all of them itself.
  readonly #worker = new Worker(WORKER_FILE, { trackUnmanagedFds: false });
  #hear: (message: FromWorker) => void = () => {};
  #died: (error: unknown) => void = () => {};

  constructor() {
    this.#worker.on("message", (message: FromWorker) => this.#hear(message));
    this.#worker.on("error", (error) => this.#died(error));
    this.#worker.on("exit", () => this.#died(new Error("the unpacking thread ended")));
  }

  /** As `unpackLayer`. After a rejection the thread must be stopped: it may still be at it. */
  async unpack(
    open: () => AsyncIterable<Uint8Array>,
    { lower, ...options }: UnpackOptions,
    signal: AbortSignal | undefined,
  ): Promise<UnpackedLayer> {
    let isDone = false;
    let ahead = 0;
    let wake = (): void => {};
    const outcome = new Promise<UnpackedLayer>((resolve, reject) => {
      this.#died = reject;
      this.#hear = (message) => {
        if (message.kind === "unpacked") resolve(message.layer);
        else if (message.kind === "failed") reject(arrived(message.error));
        else if (message.kind === "lower-needed")
          lower().then((layers) => this.#say({ kind: "lower", layers }), reject);
        else if (message.kind === "consumed") {
          ahead -= 1;
          wake();
        }
      };
    });
    const aborted = abortOf(signal);
    const send = async (): Promise<UnpackedLayer> => {
      for await (const bytes of open()) {
        if (isDone) break;
        this.#say({ kind: "chunk", bytes });
        ahead += 1;
        while (ahead >= WINDOW && !isDone)
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
      this.#say({ kind: "end" });
      return outcome;
    };
    this.#worker.ref();
    this.#say({ kind: "unpack", options });
    try {
      return await Promise.race([outcome, send(), aborted.promise]);
    } finally {
      isDone = true;
      wake();
      aborted.forget();
      this.#worker.unref();
    }
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, GRACE_MS);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#died = done;
      this.#hear = ({ kind }) => {
        if (kind === "stopped") done();
      };
      this.#say({ kind: "stop" });
    });
    await this.#worker.terminate();
  }

  #say(message: ToWorker): void {
    this.#worker.postMessage(message);
  }
}

/** Rejects when the signal is aborted. */
function abortOf(signal: AbortSignal | undefined): { promise: Promise<never>; forget: () => void } {
  let onAbort = (): void => {};
  const promise = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
  return { promise, forget: () => signal?.removeEventListener("abort", onAbort) };
}
