/**
 * Owns the engine port: token ids in, token ids out (C2). An engine knows no session and trusts no text.
 * Implementations: embedded-engine.ts (our decoder in worker threads), vllm/ (a server over HTTP), scripted/
 * (plays given ids), recording/ (writes down what another engine did, and plays it again).
 */

/**
 * What an engine can do, found out when it is opened and stated in the log. What is absent has a consequence:
 * consequences.ts says which.
 */
export interface EngineCapabilities {
  /** Without ids in and ids out nothing could be captured: such a server is refused, so there is no `false`. */
  readonly tokenIds: true;
  /**
   * Of which distribution log-probabilities are: `processed`, the one that was sampled from; `raw`, the one
   * before temperature; `none`, not given.
   */
  readonly logProbabilities: "processed" | "raw" | "none";
  /** Whether the experts each token was routed to are reported. */
  readonly routedExperts: boolean;
  /** Whether the engine itself says which weights sampled which token. */
  readonly weightVersions: boolean;
  /** Whether turns in flight can be frozen and go on, so that weights change without losing them (C9). */
  readonly pauseResume: boolean;
  /** Whether it takes new weights; one that does not serves its first weights for ever. */
  readonly weightUpdates: boolean;
  /** Context and reply together, tokens, when the engine has a bound of its own. */
  readonly maxTokens: number | undefined;
}

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
  /** First position (of context and sampled ids) whose routing is wanted; 0 when absent. */
  readonly routingFrom?: number;
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

/** Which experts the router chose: one row a position, from `start` on, without a row for the last sampled id. */
export interface RoutedExperts {
  /** Position (of context and sampled ids) of the first row. */
  readonly start: number;
  readonly shape: readonly [rows: number, layers: number, topK: number];
  readonly dtype: "uint8" | "uint16" | "int32";
  /** Row-major, little-endian, as the engine gave them. */
  readonly bytes: Uint8Array;
}

export interface Generated {
  /** A sampled end-of-turn id is the last of them (C2). */
  readonly ids: Int32Array;
  /** After sampling transforms; undefined when the engine has none (C10). */
  readonly logProbabilities: Float32Array | undefined;
  readonly spans: readonly SampledSpan[];
  readonly finish: "stop" | "length" | "abort";
  /** Which engine sampled, when the one that was asked passes turns on to others. */
  readonly engine?: string;
  /** Undefined when the engine gave none (C10). */
  readonly routedExperts?: RoutedExperts | undefined;
}

export interface LoadedWeights {
  readonly version: number;
  readonly sha256: string;
}

export interface EngineStatus {
  /** False while it is known to be away; turns given to it then fail. */
  readonly isServing: boolean;
  readonly loaded: LoadedWeights | undefined;
  readonly activeTurns: number;
  /** CPU time of model compute in this process so far, milliseconds; 0 for an engine elsewhere. */
  readonly computeCpuMs: number;
  readonly sampledTokens: number;
}

export interface Engine {
  /** Unique among engines of all replicas; names receipts and turn records. */
  readonly id: string;
  readonly capabilities: EngineCapabilities;
  /** @throws MortiseError MORTISE_PROVIDER_ENGINE when the engine failed; what was sampled is then lost */
  generate(request: GenerateRequest): Promise<Generated>;
  /**
   * Swaps the weights between decode steps; turns in flight go on under the new ones (C9).
   * @throws MortiseError MORTISE_PROVIDER_ENGINE when the engine cannot; it then serves what it served before,
   *   or nothing when it no longer knows what it holds
   */
  loadWeights(weights: LoadedWeights & { readonly safetensors: Uint8Array }): Promise<void>;
  status(): EngineStatus;
  close(): Promise<void>;
}
