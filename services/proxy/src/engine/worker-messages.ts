/** Owns the messages between the embedded engine and its worker threads. No code. */
import type { DecoderConfig } from "@mortise/policy";
import type { SampledSpan } from "./types.js";

export interface WorkerStart {
  readonly config: DecoderConfig;
  readonly maxBatch: number;
  readonly cacheTokens: number;
}

export type ToWorker =
  | {
      readonly kind: "generate";
      readonly ticket: number;
      readonly contextIds: Int32Array;
      readonly maxTokens: number;
      readonly temperature: number;
      readonly stopIds: readonly number[];
      readonly rngKey: string;
      /** Whether ids are wanted before the end. */
      readonly isStream: boolean;
    }
  | { readonly kind: "abort"; readonly ticket: number }
  | {
      readonly kind: "weights";
      readonly version: number;
      /** Shared between the workers: copied once per version, not once per worker. */
      readonly safetensors: SharedArrayBuffer;
    };

/** What a turn sampled since the last report. */
export interface TurnProgress {
  readonly ticket: number;
  readonly ids: readonly number[];
}

export interface TurnResult {
  readonly ticket: number;
  readonly ids: Int32Array;
  readonly logProbabilities: Float32Array;
  readonly spans: readonly SampledSpan[];
  readonly finish: "stop" | "length" | "abort";
}

export type FromWorker =
  | {
      /** One report covers every turn of the worker, over one or more decode steps. */
      readonly kind: "progress";
      readonly streamed: readonly TurnProgress[];
      readonly ended: readonly TurnResult[];
      readonly computeCpuMs: number;
    }
  | { readonly kind: "refused"; readonly ticket: number; readonly reason: string }
  | { readonly kind: "loaded"; readonly version: number }
  | { readonly kind: "not-loaded"; readonly version: number; readonly reason: string };
