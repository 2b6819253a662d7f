/**
 * Owns what the two token routes of vLLM have in common: what is asked, and what a piece of an answer says.
 * generate-wire.ts and completions-wire.ts speak one route each; turn.ts puts the pieces together.
 */
import { z } from "zod";
import type { GenerateRequest } from "../types.js";
import type { VllmServer } from "./server.js";

/** A request as a server is asked it. */
export interface Asked {
  readonly request: GenerateRequest;
  readonly model: string;
  /** Keeps KV caches of different weights apart; undefined shares the cache with anybody. */
  readonly cacheSalt: string | undefined;
  readonly seed: number;
  /** Most likely alternatives wanted beside each sampled id; 0 for sampling. */
  readonly alternatives: number;
  /** Whether the server is to repeat the context it was given. */
  readonly echoesContext: boolean;
}

/** Sampled under `label`: output positions from `start` up to `end`. */
export interface LabelledSpan {
  readonly label: string;
  readonly start: number;
  readonly end: number;
}

/** What one event adds to a turn. */
export interface Piece {
  readonly ids: readonly number[];
  /** One per id; undefined when the server gave none, null where it gave none for one id. */
  readonly logProbabilities: readonly (number | null)[] | undefined;
  /** Per id, log-probabilities of the sampled id and of the likeliest ones, by id. */
  readonly alternatives: readonly ReadonlyMap<number, number>[];
  readonly finish: string | undefined;
  /** The ids the server sampled under, as far as this event says. */
  readonly contextIds: readonly number[] | undefined;
  readonly contextLength: number | undefined;
  readonly spans: readonly LabelledSpan[] | undefined;
  /** Base64 of a .npy file. */
  readonly routedExperts: string | undefined;
}

export interface Wire {
  readonly path: string;
  /** Whether the route can report which weights sampled a token, and routed experts in a stream. */
  readonly isRich: boolean;
  body(asked: Asked): object;
  headers(asked: Asked): Record<string, string>;
  /** @throws z.ZodError for an event of another shape */
  read(event: unknown): Piece;
}

/** What vLLM writes for a log-probability that is not there or not finite. */
const NO_LOG_PROBABILITY = -9999;

export function presentOrNull(value: number | null | undefined): number | null {
  return value === null || value === undefined || value <= NO_LOG_PROBABILITY ? null : value;
}

/** What an error looks like inside a stream that began well. */
const StreamedError = z.object({ error: z.object({ message: z.string() }) });

/** @throws MortiseError MORTISE_PROVIDER_ENGINE for an error inside the stream, or an event of another shape */
export function readPiece(server: VllmServer, wire: Wire, event: unknown): Piece {
  const failed = StreamedError.safeParse(event).data;
  if (failed) throw server.failure(wire.path, failed.error.message);
  try {
    return wire.read(event);
  } catch (cause) {
    throw server.failure(wire.path, "an event has a shape that this version does not know", cause);
  }
}

export const Usage = z.object({ prompt_tokens: z.int() }).nullish();

/**
 * The policy decides sampling (C8): every transform but temperature is turned off by name, since a server's
 * defaults come from the checkpoint's generation_config.json, and only the policy's ids end a turn.
 */
export function samplingOf({ request, seed, alternatives }: Asked) {
  return {
    temperature: request.temperature,
    top_p: 1,
    top_k: 0,
    min_p: 0,
    repetition_penalty: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    max_tokens: request.maxTokens,
    stop_token_ids: [...request.stopIds],
    ignore_eos: true,
    logprobs: alternatives,
    seed,
    skip_special_tokens: false,
  };
}
