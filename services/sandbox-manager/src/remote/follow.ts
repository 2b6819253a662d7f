/**
 * Owns carrying one invocation through whatever happens to its connection: when it may be begun again, when it is only
 * asked for, when it is given up.
 *
 * F1  `start` is said again only when the runtime said that nothing began, or could not be reached at all. Once it may
 *     have arrived, the invocation is only ever attached to: an agent is never run twice for one trial unknowingly.
 * F2  What is given up is cancelled at the runtime, as far as it can be reached.
 */
import {
  type InvocationResult,
  type InvocationStatus,
  MortiseError,
  type RemoteHarness,
  type StartInvocation,
} from "@mortise/contracts";
import { type Clock, fromUnknown, type Log, sleep } from "@mortise/kernel";
import { ConnectionBroke, type RemoteAgent, type RemoteHandle } from "./agent.js";

const PAUSE_MS = 1_000;
const CANCEL_MS = 10_000;

export interface Following {
  readonly agent: RemoteAgent;
  readonly times: Pick<
    RemoteHarness["remote"],
    "startTimeoutMs" | "silenceTimeoutMs" | "graceMs" | "reattachTimeoutMs"
  >;
  /** Of the agent at the runtime. */
  readonly limitMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborting cancels the invocation; it then ends as `cancelled`. */
  readonly signal: AbortSignal;
  readonly onHandle: (handle: RemoteHandle) => void;
}

/** Begins an invocation. Rejects with MORTISE_HARNESS_REMOTE_REFUSED, _DENIED, _ANSWER or _LOST. */
export function carryOut(
  request: StartInvocation,
  following: Following,
): Promise<InvocationResult | "cancelled"> {
  return new Carrying(following, { id: request.id }).run((carrying) => carrying.start(request));
}

/** Goes on with one that an earlier process began. Rejects with MORTISE_HARNESS_REMOTE_LOST, _DENIED or _ANSWER. */
export function takeUp(handle: RemoteHandle, following: Following): Promise<InvocationResult | "cancelled"> {
  return new Carrying(following, handle).run((carrying) => carrying.attach());
}

class Carrying {
  readonly #following: Following;
  readonly #end = new AbortController();
  #handle: RemoteHandle;
  #heardAt: number;
  #mayRun = false;

  constructor(following: Following, handle: RemoteHandle) {
    this.#following = following;
    this.#handle = handle;
    this.#heardAt = following.clock.now();
  }

  async run(act: (carrying: Carrying) => Promise<InvocationResult>): Promise<InvocationResult | "cancelled"> {
    const { signal, limitMs, times, clock } = this.#following;
    const ended = Promise.withResolvers<"cancelled">();
    const onAbort = () => ended.resolve("cancelled");
    const deadline = clock.after(limitMs + times.graceMs, () =>
      ended.reject(
        lost(`it did not answer within its agent's ${limitMs} ms and remote.graceMs, ${times.graceMs}`),
      ),
    );
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      const outcome = await Promise.race([act(this), ended.promise]);
      if (outcome === "cancelled") await this.#cancel();
      return outcome;
    } catch (error) {
      await this.#cancel();
      throw error;
    } finally {
      deadline();
      signal.removeEventListener("abort", onAbort);
      this.#end.abort();
    }
  }

  async start(request: StartInvocation): Promise<InvocationResult> {
    const { agent, times, clock } = this.#following;
    const giveUpAt = clock.now() + times.startTimeoutMs;
    for (;;) {
      try {
        return await this.#listen((watch, signal) => agent.start(request, watch, signal));
      } catch (error) {
        if (error instanceof ConnectionBroke && (error.mayHaveArrived || this.#mayRun)) {
          this.#mayRun = true;
          return this.attach();
        }
        const refusal = refusalOf(error);
        if (refusal === undefined) {
          // What it made of the message nobody knows.
          this.#mayRun = true;
          throw error;
        }
        if (clock.now() + PAUSE_MS > giveUpAt) throw refusal;
        await sleep(PAUSE_MS, clock, this.#end.signal);
      }
    }
  }

  async attach(): Promise<InvocationResult> {
    const { agent, times, clock } = this.#following;
    this.#mayRun = true;
    this.#heardAt = clock.now();
    for (;;) {
      try {
        return await this.#listen((watch, signal) => agent.attach(this.#handle, watch, signal));
      } catch (error) {
        if (!(error instanceof ConnectionBroke)) throw error;
        if (clock.now() - this.#heardAt > times.reattachTimeoutMs)
          throw lost(`it cannot be reached for ${times.reattachTimeoutMs} ms: ${error.message}`, error);
        await sleep(PAUSE_MS, clock, this.#end.signal);
      }
    }
  }

  /** One exchange, which ends as broken when nothing is heard for too long. */
  async #listen(
    act: (watch: Parameters<RemoteAgent["start"]>[1], signal: AbortSignal) => Promise<InvocationResult>,
  ): Promise<InvocationResult> {
    const { times, clock, onHandle } = this.#following;
    const silence = new AbortController();
    let cancelTimer = clock.after(times.silenceTimeoutMs, () => silence.abort());
    const heard = () => {
      this.#heardAt = clock.now();
      cancelTimer();
      cancelTimer = clock.after(times.silenceTimeoutMs, () => silence.abort());
    };
    const watch = {
      accepted: (handle: RemoteHandle) => {
        heard();
        this.#mayRun = true;
        this.#handle = handle;
        onHandle(handle);
      },
      status: (_status: InvocationStatus) => heard(),
    };
    try {
      return await act(watch, AbortSignal.any([silence.signal, this.#end.signal]));
    } catch (error) {
      if (silence.signal.aborted) throw new ConnectionBroke("nothing was heard for too long", true, error);
      throw error;
    } finally {
      cancelTimer();
    }
  }

  /** F2 */
  async #cancel(): Promise<void> {
    this.#end.abort();
    if (!this.#mayRun) return;
    const { agent, log } = this.#following;
    try {
      await agent.cancel(this.#handle, AbortSignal.timeout(CANCEL_MS));
    } catch (error) {
      const err = fromUnknown(error, "MORTISE_HARNESS_REMOTE_LOST", `cancelling ${this.#handle.id}`);
      log.warn({ event: "remote.not-cancelled", id: this.#handle.id, err });
    }
  }
}

/** Of what may be tried again because nothing began: an error that says so. */
function refusalOf(error: unknown): MortiseError | undefined {
  if (error instanceof ConnectionBroke)
    return new MortiseError({
      code: "MORTISE_HARNESS_REMOTE_REFUSED",
      message: `it cannot be reached: ${error.message}`,
      cause: error,
    });
  return error instanceof MortiseError && error.code === "MORTISE_HARNESS_REMOTE_REFUSED" ? error : undefined;
}

function lost(message: string, cause?: unknown): MortiseError {
  return new MortiseError({ code: "MORTISE_HARNESS_REMOTE_LOST", message: `${message}.`, cause });
}
