/**
 * Owns a turn while it is in the making: who may cut it, and when it is forsaken. Does not sample or store it.
 *
 * R1  A broken connection does not stop a turn: the retry finds it (C6). A turn nobody asks for again within
 *     FORSAKEN_MS is cut: the retries of the measured harnesses come within 36 s.
 */
import type { RequestDigests } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { Cancel, Clock } from "@mortise/kernel";
import type { Connection, Reply } from "./reply.js";

export const FORSAKEN_MS = 60_000;

export class RunningTurn {
  readonly reply: Reply;
  /** Resolves once it is captured or has failed; never rejects. */
  readonly done: Promise<void>;
  private readonly digests: RequestDigests;
  private readonly clock: Clock;
  private readonly cutter = new AbortController();
  private cancelForsaking: Cancel = () => {};

  /** @param make samples and stores the turn until `signal` is aborted */
  constructor(
    parts: { reply: Reply; digests: RequestDigests; clock: Clock },
    make: (signal: AbortSignal) => Promise<void>,
  ) {
    this.reply = parts.reply;
    this.digests = parts.digests;
    this.clock = parts.clock;
    this.reply.onOrphaned = () => this.awaitRetry();
    this.done = make(this.cutter.signal).finally(() => this.cancelForsaking());
  }

  /** Whether the same body may be answered with it (C6). */
  isJoinedBy(digests: RequestDigests): boolean {
    return this.isOrphaned && equalBytes(digests.body, this.digests.body);
  }

  /** Whether a request goes on from its unfinished reply: it repeats its messages and an answer to them. */
  isExtendedBy({ messages }: RequestDigests): boolean {
    const { messages: own } = this.digests;
    return (
      messages[own.length]?.role === "assistant" &&
      own.every((message, at) => equalBytes(message.digest, messages[at]!.digest))
    );
  }

  get isOrphaned(): boolean {
    return this.reply.isOrphaned && !this.cutter.signal.aborted;
  }

  connect(): Connection {
    this.cancelForsaking();
    return this.reply.connect();
  }

  /** Ends sampling with what there is; the reply fails with `reason`. */
  cut(reason: MortiseError): void {
    this.cutter.abort(reason);
  }

  /** R1 */
  private awaitRetry(): void {
    this.cancelForsaking();
    this.cancelForsaking = this.clock.after(FORSAKEN_MS, () => this.cut(forsaken()));
  }
}

function forsaken(): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_CANCELLED",
    message: "The connection broke and nobody asked for the reply again.",
  });
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
