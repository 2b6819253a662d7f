/**
 * Owns the engine port: token ids in, token ids out (C2). An engine knows no text, no session and no run.
 * Implementations: embedded.ts (our decoder in worker threads); an engine that plays given ids in tests.
 */

export interface GenerateRequest {
  /** Turns of one session should meet the same KV cache; equal keys go to the same place. */
  readonly affinity: string;
  readonly contextIds: Int32Array;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly stopIds: ReadonlySet<number>;
  /** Same key, turn and position give the same random number (DESIGN §6, determinism). */
  readonly rngKey: string;
  readonly turnIndex: number;
  /** Told of sampled ids as they come, in order, when given. May be called with several at once. */
  readonly onIds: ((ids: readonly number[]) => void) | undefined;
  /** Aborting ends the turn with what was sampled, finish "abort". */
  readonly signal: AbortSignal;
}

export interface SampledSpan {
  readonly start: number;
  readonly length: number;
  readonly policyVersion: number;
  /** Part of the KV cache under the span was computed with older weights (C9). */
  readonly isStaleCache: boolean;
}

export interface Generated {
  /** A sampled end-of-turn id is the last of them (C2). */
  readonly ids: Int32Array;
  /** After sampling transforms; undefined when the engine has none (C10). */
  readonly logProbabilities: Float32Array | undefined;
  readonly spans: readonly SampledSpan[];
  readonly finish: "stop" | "length" | "abort";
}

export interface LoadedWeights {
  readonly version: number;
  readonly sha256: string;
}

export interface EngineStatus {
  readonly loaded: LoadedWeights | undefined;
  readonly activeTurns: number;
  /** CPU time of model compute so far, milliseconds. */
  readonly computeCpuMs: number;
  readonly sampledTokens: number;
}

export interface Engine {
  /** Unique among engines of all replicas; names receipts and turn records. */
  readonly id: string;
  /** @throws MortiseError MORTISE_PROVIDER_ENGINE when the engine failed; what was sampled is then lost */
  generate(request: GenerateRequest): Promise<Generated>;
  /** Swaps the weights between decode steps; turns in flight go on under the new ones (C9). */
  loadWeights(weights: LoadedWeights & { readonly safetensors: Uint8Array }): Promise<void>;
  status(): EngineStatus;
  close(): Promise<void>;
}
