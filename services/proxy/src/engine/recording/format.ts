/**
 * Owns the recording format: JSON lines, one header, then one line for each turn or load of weights, in order
 * of their ends. Holds ids, numbers and times; no text, no token of a session, no key. Version 1.
 */
import { Buffer } from "node:buffer";
import { z } from "zod";
import type { Generated, GenerateRequest, RoutedExperts } from "../types.js";

export const RECORDING_FORMAT = "mortise.engine-recording";

const count = z.int().min(0);

const Capabilities = z.strictObject({
  tokenIds: z.literal(true),
  logProbabilities: z.enum(["processed", "raw", "none"]),
  routedExperts: z.boolean(),
  weightVersions: z.boolean(),
  pauseResume: z.boolean(),
  weightUpdates: z.boolean(),
  maxTokens: count.optional(),
});

export const RecordingHeader = z.strictObject({
  format: z.literal(RECORDING_FORMAT),
  schema: z.literal(1),
  engine: z.string(),
  capabilities: Capabilities,
});

const Request = z.strictObject({
  affinity: z.string(),
  turnIndex: count,
  contextIds: z.array(count),
  maxTokens: count,
  temperature: z.number(),
  stopIds: z.array(count),
});

const Routing = z.strictObject({
  start: count,
  shape: z.tuple([count, count, count]),
  dtype: z.enum(["uint8", "uint16", "int32"]),
  base64: z.string(),
});

const RecordedTurn = z.strictObject({
  kind: z.literal("turn"),
  request: Request,
  ids: z.array(count),
  logProbabilities: z.array(z.number()).nullable(),
  spans: z.array(
    z.strictObject({ start: count, length: count, policyVersion: count, isStaleCache: z.boolean() }),
  ),
  finish: z.enum(["stop", "length", "abort"]),
  routing: Routing.nullable(),
  /** [milliseconds after the request, ids that came then]; one entry for a turn that was not streamed. */
  chunks: z.array(z.tuple([z.number().min(0), count])),
  endMs: z.number().min(0),
});

const RecordedFailure = z.strictObject({
  kind: z.literal("failure"),
  request: Request,
  /** Ids that came before. */
  ids: z.array(count),
  reason: z.string(),
  endMs: z.number().min(0),
});

const RecordedLoad = z.strictObject({ kind: z.literal("weights"), version: count, sha256: z.string() });

export const RecordedLine = z.discriminatedUnion("kind", [RecordedTurn, RecordedFailure, RecordedLoad]);

export type RecordedTurn = z.infer<typeof RecordedTurn>;
export type RecordedFailure = z.infer<typeof RecordedFailure>;
export type RecordedLine = z.infer<typeof RecordedLine>;

export function recordedRequest(request: GenerateRequest): RecordedTurn["request"] {
  const { affinity, turnIndex, contextIds, maxTokens, temperature, stopIds } = request;
  return { affinity, turnIndex, contextIds: [...contextIds], maxTokens, temperature, stopIds: [...stopIds] };
}

/** The float32 log-probabilities are written as the doubles they are, so that they are read back exactly. */
export function recordedResult(
  generated: Generated,
): Omit<RecordedTurn, "kind" | "request" | "chunks" | "endMs"> {
  const { ids, logProbabilities, spans, finish, routedExperts } = generated;
  return {
    ids: [...ids],
    logProbabilities: logProbabilities ? [...logProbabilities] : null,
    spans: [...spans],
    finish,
    routing: routedExperts ? routingLine(routedExperts) : null,
  };
}

export function generatedOf(turn: RecordedTurn): Generated {
  const { ids, logProbabilities, spans, finish, routing } = turn;
  return {
    ids: Int32Array.from(ids),
    logProbabilities: logProbabilities ? Float32Array.from(logProbabilities) : undefined,
    spans,
    finish,
    routedExperts: routing ? routingOf(routing) : undefined,
  };
}

function routingOf({ start, shape, dtype, base64 }: z.infer<typeof Routing>): RoutedExperts {
  return { start, shape, dtype, bytes: new Uint8Array(Buffer.from(base64, "base64")) };
}

function routingLine({ start, shape, dtype, bytes }: RoutedExperts): z.infer<typeof Routing> {
  return { start, shape: [...shape], dtype, base64: Buffer.from(bytes).toString("base64") };
}
