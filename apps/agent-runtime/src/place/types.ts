/**
 * Owns what an invocation needs of the place its agent runs in, and what a provider of such places says of itself.
 * Does not make one; see runc-place.ts and chroot/.
 */
import type { RuntimePlace, StartInvocation } from "@mortise/contracts";
import type { Image, Sandbox, ShelvedHarness } from "@mortise/sandbox-manager";

/** Of a sandbox, what an invocation asks for. */
export type PlaceSandbox = Pick<
  Sandbox,
  "exec" | "putTar" | "getTar" | "quiesce" | "diff" | "stats" | "destroy"
> & { readonly modelTimeMs?: number };

export interface AgentPlace {
  readonly sandbox: PlaceSandbox;
  readonly image: Image;
  /** Origin of the model API inside; the standard one when absent. */
  readonly modelUrl?: string;
  /** Claims, for the record. */
  readonly said: RuntimePlace;
}

export interface PlaceOrder {
  readonly request: StartInvocation;
  readonly harness: ShelvedHarness;
  /** Where the model is on this machine's loopback. */
  readonly modelPort: number;
  readonly signal: AbortSignal;
}

export interface PlaceProvider {
  readonly kind: RuntimePlace["kind"];
  harness(name: string): Promise<ShelvedHarness>;
  /** Obtains what harnesses need before an invocation asks; what cannot be is logged, and tried again then. */
  prepareHarnesses(): Promise<void>;
  /** Rejects with what failed; nothing is left then. */
  make(order: PlaceOrder): Promise<AgentPlace>;
  close(): Promise<void>;
}
