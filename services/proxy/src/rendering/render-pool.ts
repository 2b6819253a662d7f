/**
 * Owns where rendering happens: little is rendered at once in the proxy's own thread, much goes to one of a few
 * threads, so that no call holds the sessions of everybody else. Does not render (render-task.ts) and knows no
 * session; their order is theirs (session.ts).
 *
 * T1  A thread does one thing at a time; what waits for one is bounded, and waits in the order it came.
 * T2  Nothing holds a thread for good: after TASK_LIMIT_MS, or out of memory, the thread is ended, the call is
 *     refused, and another thread goes on with the next.
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { type ErrorCode, MortiseError } from "@mortise/contracts";
import type { Cancel, Clock, Log } from "@mortise/kernel";
import type { Renderer } from "@mortise/rendering";
import { type RenderOutcome, type RenderTask, renderTask } from "./render-task.js";
import type {
  BodyFault,
  BodyLimits,
  FromRenderThread,
  RendererSource,
  ToRenderThread,
} from "./worker-messages.js";

const THREAD_FILE = new URL("../../dist/rendering/render-thread.js", import.meta.url);
/** Characters rendered and tokenised within some milliseconds, which streams do not notice. */
const INLINE_CHARACTERS = 16 * 1024;
/** More than sessions that begin at once; how much they hold together is bounded by their bodies (front/body.ts). */
const MAX_WAITING = 4096;
const MAX_THREADS = 2;
const TASK_LIMIT_MS = 60_000;
const THREAD_MEMORY_MIB = 1024;
/** Runs a thread has renderers of; a tokenizer takes tens of megabytes. */
const RUNS_PER_THREAD = 4;
const RETRY_AFTER_MS = 2_000;

export interface RenderPoolOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly threads?: number;
}

/** Rendering for one run. */
export interface RunRendering {
  /**
   * At once where it takes no time, else later.
   * @throws MortiseError what the template refuses, MORTISE_PROVIDER_TOO_LARGE (T2), MORTISE_TRANSPORT_MAILBOX_FULL
   */
  render(task: RenderTask): RenderOutcome | Promise<RenderOutcome>;
}

interface Job {
  readonly run: { readonly name: string; readonly source: RendererSource } | undefined;
  readonly message: ToRenderThread;
  resolve(answer: FromRenderThread): void;
  reject(error: MortiseError): void;
}

export class RenderPool {
  private readonly threads: Thread[];
  private readonly waiting: Job[] = [];

  constructor(options: RenderPoolOptions) {
    const count = options.threads ?? Math.max(1, Math.min(MAX_THREADS, availableParallelism() - 1));
    this.threads = Array.from({ length: count }, () => new Thread(options, () => this.next()));
  }

  /** Calls that are being rendered or looked through, or wait for it. */
  get size(): number {
    return this.waiting.length + this.threads.filter((thread) => thread.isBusy).length;
  }

  forRun(name: string, renderer: Renderer, source: RendererSource): RunRendering {
    return {
      render: (task) => {
        if (renderer.weigh(task.conversation, task.kept?.messages) <= INLINE_CHARACTERS)
          return renderTask(renderer, task);
        return this.do({ kind: "render", run: name, task }, { name, source }).then((answer) => {
          if (answer.kind === "rendered") return answer.outcome;
          throw asError(answer as Extract<FromRenderThread, { kind: "refused" }>);
        });
      },
    };
  }

  /** What is wrong with a body, found out beside the proxy's own thread. */
  async faultOf(bytes: Uint8Array, limits: BodyLimits): Promise<BodyFault | undefined> {
    const answer = await this.do({ kind: "body", bytes, limits }, undefined);
    return (answer as Extract<FromRenderThread, { kind: "body" }>).fault;
  }

  async close(): Promise<void> {
    for (const job of this.waiting.splice(0)) job.reject(stopping());
    await Promise.all(this.threads.map((thread) => thread.close()));
  }

  /** T1 */
  private do(message: ToRenderThread, run: Job["run"]): Promise<FromRenderThread> {
    if (this.waiting.length >= MAX_WAITING) return Promise.reject(full());
    return new Promise((resolve, reject) => {
      this.waiting.push({ run, message, resolve, reject });
      this.next();
    });
  }

  private next(): void {
    for (const thread of this.threads) {
      if (this.waiting.length === 0) return;
      if (!thread.isBusy) thread.do(this.waiting.shift()!);
    }
  }
}

class Thread {
  private readonly options: RenderPoolOptions;
  private readonly onFree: () => void;
  private worker: Worker | undefined;
  private job: Job | undefined;
  private readonly runs = new Set<string>();
  private cancelLimit: Cancel = () => {};
  private isClosed = false;

  constructor(options: RenderPoolOptions, onFree: () => void) {
    this.options = options;
    this.onFree = onFree;
  }

  get isBusy(): boolean {
    return this.job !== undefined || this.isClosed;
  }

  do(job: Job): void {
    this.job = job;
    this.worker ??= this.spawn();
    if (job.run) this.introduce(job.run);
    this.cancelLimit = this.options.clock.after(TASK_LIMIT_MS, () => this.end(tookTooLong()));
    this.worker.postMessage(job.message);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.settle()?.reject(stopping());
    await this.worker?.terminate();
  }

  private spawn(): Worker {
    const worker = new Worker(THREAD_FILE, { resourceLimits: { maxOldGenerationSizeMb: THREAD_MEMORY_MIB } });
    worker.unref();
    this.runs.clear();
    worker.on("message", (answer: FromRenderThread) => {
      this.settle()?.resolve(answer);
      this.onFree();
    });
    worker.on("error", (error) => {
      this.options.log.error({ event: "rendering.thread-failed", err: error });
      if (worker === this.worker) this.end(outOfMemory(error) ? tookTooLong() : failed(error));
    });
    return worker;
  }

  /** A run it was not asked for before replaces the one it has had for longest. */
  private introduce({ name, source }: NonNullable<Job["run"]>): void {
    if (this.runs.has(name)) return;
    this.runs.add(name);
    this.send({ kind: "run", run: name, source });
    const [oldest] = this.runs;
    if (this.runs.size <= RUNS_PER_THREAD) return;
    this.runs.delete(oldest!);
    this.send({ kind: "forget", run: oldest! });
  }

  /** T2 */
  private end(error: MortiseError): void {
    const { worker } = this;
    this.worker = undefined;
    void worker?.terminate();
    this.settle()?.reject(error);
    this.onFree();
  }

  private settle(): Job | undefined {
    const { job } = this;
    this.job = undefined;
    this.cancelLimit();
    return job;
  }

  private send(message: ToRenderThread): void {
    this.worker!.postMessage(message);
  }
}

function outOfMemory(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY";
}

function asError({
  code,
  message,
  fix,
  detail,
}: Extract<FromRenderThread, { kind: "refused" }>): MortiseError {
  return new MortiseError({ code: code as ErrorCode, message, fix, detail });
}

function tookTooLong(): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_TOO_LARGE",
    message: "The messages are too large to be tokenised.",
  });
}

function failed(cause: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_INTERNAL",
    message: "The thread that renders ended.",
    cause,
  });
}

function full(): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_MAILBOX_FULL",
    message: `${MAX_WAITING} large calls wait to be rendered.`,
    fix: "Wait for one of them.",
    retryAfterMs: RETRY_AFTER_MS,
  });
}

function stopping(): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "The proxy is stopping." });
}
