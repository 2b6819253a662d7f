/**
 * Owns which invocations there are: how many run, which id is known, what an ended one gave, for how long. The one
 * place that decides whether something is begun, for every front.
 *
 * V1  An id is run once (N1): whoever names it again joins what runs, or has its result, if the body is the same.
 * V2  Nothing waits: what cannot begin at once is refused, and whoever asked knows that nothing ran.
 * V3  An invocation goes on when its caller goes away; only `cancel` and the end of this process end it.
 */
import { createHash } from "node:crypto";
import {
  type InvocationResult,
  type InvocationStatus,
  MortiseError,
  type StartInvocation,
} from "@mortise/contracts";
import type { Clock, Log } from "@mortise/kernel";
import { type PerformTools, perform } from "./perform.js";

export interface InvocationLimits {
  readonly maxInvocations: number;
  readonly maxRemembered: number;
  readonly rememberMs: number;
  readonly maxTimeoutMs: number;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly pids: number;
  readonly diskBytes: number;
  readonly outputBytes: number;
}

export interface InvocationsOptions extends PerformTools {
  readonly limits: InvocationLimits;
  readonly clock: Clock;
  readonly log: Log;
}

export type StatusListener = (status: InvocationStatus) => void;

/** One that was begun. */
export class Invocation {
  readonly id: string;
  readonly digest: string;
  readonly result: Promise<InvocationResult>;
  readonly #abort: AbortController;
  readonly #listeners = new Set<StatusListener>();
  #status: InvocationStatus;
  endedAt: number | undefined;

  constructor(
    identity: { readonly id: string; readonly digest: string },
    clock: Clock,
    begin: (
      signal: AbortSignal,
      onPhase: (phase: InvocationStatus["phase"]) => void,
    ) => Promise<InvocationResult>,
  ) {
    this.id = identity.id;
    this.digest = identity.digest;
    this.#abort = new AbortController();
    this.#status = { phase: "accepted", atMs: clock.now() };
    this.result = begin(this.#abort.signal, (phase) => {
      this.#status = { phase, atMs: clock.now() };
      for (const listener of this.#listeners) listener(this.#status);
    }).finally(() => {
      this.endedAt = clock.now();
      this.#listeners.clear();
    });
  }

  get status(): InvocationStatus {
    return this.#status;
  }

  /** Told the present status at once. Returns what ends it. */
  follow(listener: StatusListener): () => void {
    this.#listeners.add(listener);
    listener(this.#status);
    return () => this.#listeners.delete(listener);
  }

  /** Ends it as cancelled; one that has ended stays as it is. */
  cancel(): void {
    this.#abort.abort();
  }
}

export class Invocations {
  readonly #options: InvocationsOptions;
  readonly #known = new Map<string, Invocation>();
  #isDraining = false;

  constructor(options: InvocationsOptions) {
    this.#options = options;
  }

  get nRunning(): number {
    return [...this.#known.values()].filter(({ endedAt }) => endedAt === undefined).length;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /**
   * Begins an invocation or joins the one of its id (V1).
   * @throws MortiseError MORTISE_HARNESS_REMOTE_REFUSED: nothing ran
   */
  start(request: StartInvocation): Invocation {
    const digest = createHash("sha256").update(JSON.stringify(request)).digest("hex");
    this.#forget();
    const known = this.#known.get(request.id);
    if (known?.digest === digest) return known;
    if (known !== undefined) throw refused(`invocation ${request.id} is known with another body`);
    const { limits, clock, log } = this.#options;
    if (this.#isDraining) throw refused("this runtime is stopping");
    if (this.nRunning >= limits.maxInvocations)
      throw refused(`${limits.maxInvocations} invocations run, which is all this runtime takes`);
    if (request.limits.timeoutMs > limits.maxTimeoutMs)
      throw refused(
        `limits.timeoutMs is ${request.limits.timeoutMs}; limits.maxTimeoutMs of this runtime is ${limits.maxTimeoutMs}`,
      );
    const bounded = { ...request, limits: { ...request.limits, ...lowest(request.limits, limits) } };
    const invocation = new Invocation({ id: request.id, digest }, clock, async (signal, onPhase) => {
      const result = await perform({ request: bounded, signal, onPhase }, this.#options);
      const { id, outcome, end, timings, harness, place } = result;
      log.info({
        event: "invocation.ended",
        id,
        harness,
        outcome,
        end: end.kind,
        timings,
        place: place?.kind,
      });
      return result;
    });
    this.#known.set(request.id, invocation);
    log.info({ event: "invocation.begun", id: request.id, harness: request.harness });
    return invocation;
  }

  /** One that runs or is remembered. */
  find(id: string): Invocation | undefined {
    this.#forget();
    return this.#known.get(id);
  }

  /** Takes nothing more, waits so long, ends the rest as cancelled. Resolves when nothing runs. */
  async drain(ms: number): Promise<void> {
    this.#isDraining = true;
    const running = [...this.#known.values()].filter(({ endedAt }) => endedAt === undefined);
    const cancel = this.#options.clock.after(ms, () => {
      for (const invocation of running) invocation.cancel();
    });
    await Promise.all(running.map(({ result }) => result));
    cancel();
  }

  /** The oldest results go when there are too many, and each when its time is over. */
  #forget(): void {
    const { limits, clock } = this.#options;
    const ended = [...this.#known.values()]
      .filter(({ endedAt }) => endedAt !== undefined)
      .sort((a, b) => a.endedAt! - b.endedAt!);
    for (const [at, { id, endedAt }] of ended.entries())
      if (ended.length - at > limits.maxRemembered || clock.now() - endedAt! > limits.rememberMs)
        this.#known.delete(id);
  }
}

function lowest(asked: StartInvocation["limits"], limits: InvocationLimits) {
  return {
    cpus: Math.min(asked.cpus, limits.cpus),
    memoryBytes: Math.min(asked.memoryBytes, limits.memoryBytes),
    pids: Math.min(asked.pids, limits.pids),
    diskBytes: Math.min(asked.diskBytes, limits.diskBytes),
    outputBytes: Math.min(asked.outputBytes, limits.outputBytes),
  };
}

function refused(message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_HARNESS_REMOTE_REFUSED", message: `${message}.` });
}
