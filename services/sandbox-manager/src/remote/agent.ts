/**
 * Owns what the manager asks of a remote runtime, whatever protocol carries it, and how a connection can fail it.
 * Does not decide what is tried again (follow.ts).
 */
import type { InvocationResult, InvocationStatus, StartInvocation } from "@mortise/contracts";

/** How an invocation is found again; all that must survive this process. */
export interface RemoteHandle {
  /** `run.trial`. */
  readonly id: string;
  /** The runtime's own name of it, where it gave one. */
  readonly task?: string;
}

export interface Watch {
  /** The runtime has the invocation: it runs, or will. */
  accepted(handle: RemoteHandle): void;
  status(status: InvocationStatus): void;
}

export interface RemoteAgent {
  readonly protocol: "a2a" | "agentcore";
  /** Without credentials. */
  readonly url: string;
  /**
   * Asks who it is and whether it would take anything at all; name and version for the record.
   * Rejects with MORTISE_HARNESS_REMOTE_REFUSED, _DENIED or _ANSWER, or a ConnectionBroke.
   */
  look(signal: AbortSignal): Promise<string>;
  /**
   * Begins an invocation and waits for its result. Rejects with MORTISE_HARNESS_REMOTE_REFUSED when nothing began,
   * _DENIED, _ANSWER, or a ConnectionBroke.
   */
  start(request: StartInvocation, watch: Watch, signal: AbortSignal): Promise<InvocationResult>;
  /** As `start` for one that was begun; begins nothing. Rejects with MORTISE_HARNESS_REMOTE_LOST when it is unknown. */
  attach(handle: RemoteHandle, watch: Watch, signal: AbortSignal): Promise<InvocationResult>;
  /** Asks for its end; resolves when the runtime has heard it. */
  cancel(handle: RemoteHandle, signal: AbortSignal): Promise<void>;
}

/** A connection that ended before the answer did. */
export class ConnectionBroke extends Error {
  /** Whether anything can have reached the runtime. */
  readonly mayHaveArrived: boolean;

  constructor(message: string, mayHaveArrived: boolean, cause?: unknown) {
    super(message, { cause });
    this.mayHaveArrived = mayHaveArrived;
  }
}
