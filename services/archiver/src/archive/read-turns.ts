/**
 * Owns turns as an archive gives them back: the message that was captured, from the columns of the table. What the
 * table does not keep (audit notes, digests of texts and histories) is empty. Reads files only.
 */
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import {
  FinishReason,
  SampledToolCallSchema,
  SamplingSchema,
  SpanSchema,
  type Turn,
  TurnRelation,
  TurnRole,
  TurnSchema,
} from "@mortise/contracts";
import type { ArchivedRow } from "./parquet.js";
import { readArchive } from "./read.js";

/** The turns of a run, in stream order. A column that an older archive lacks reads as the field's default. */
export async function readTurns(directory: string, run: string): Promise<Turn[]> {
  return (await readArchive(directory, run, "turns")).map((row) => turnOf(run, row));
}

function turnOf(run: string, row: ArchivedRow): Turn {
  const text = (name: string) => (row[name] as string | null | undefined) ?? "";
  const bytes = (name: string) => (row[name] as Uint8Array | null | undefined) ?? new Uint8Array();
  const count = (name: string) => (row[name] as number | null | undefined) ?? 0;
  const long = (name: string) => (row[name] as bigint | null | undefined) ?? 0n;
  const list = (name: string) => (row[name] as JsonValue[] | null | undefined) ?? [];
  const sampling = (name: string) => {
    const value = row[name] as JsonValue | null | undefined;
    return value === null || value === undefined ? undefined : fromJson(SamplingSchema, value);
  };
  return create(TurnSchema, {
    run,
    trial: text("trial"),
    session: text("session"),
    thread: text("thread"),
    turn: text("turn"),
    index: count("index"),
    parent: text("parent"),
    relation: TurnRelation[text("relation") as keyof typeof TurnRelation] ?? TurnRelation.UNSPECIFIED,
    role: TurnRole[text("role") as keyof typeof TurnRole] ?? TurnRole.UNSPECIFIED,
    roleReason: text("role_reason"),
    messageDigests: list("message_digests").map((digest) => Buffer.from(String(digest), "hex")),
    toolsDigest: bytes("tools_digest"),
    bodyDigest: bytes("body_digest"),
    textDigest: bytes("text_digest"),
    prefixLength: count("prefix_length"),
    suffixIds: bytes("suffix_ids"),
    sampledIds: bytes("sampled_ids"),
    logProbabilities: bytes("log_probabilities"),
    spans: list("spans").map((span) => fromJson(SpanSchema, span)),
    finish: FinishReason[text("finish") as keyof typeof FinishReason] ?? FinishReason.UNSPECIFIED,
    toolCalls: list("tool_calls").map((call) => fromJson(SampledToolCallSchema, call)),
    bytesDelivered: long("bytes_delivered"),
    requestedSampling: sampling("requested_sampling"),
    appliedSampling: sampling("applied_sampling"),
    historyPolicy: text("history_policy"),
    dialect: text("dialect"),
    engine: text("engine"),
    startedAtMs: long("started_at_ms"),
    endedAtMs: long("ended_at_ms"),
    routingObject: text("routing_object"),
    evaluation: (row.evaluation as boolean | null | undefined) ?? false,
    harness: text("harness"),
    agent: text("agent"),
    model: text("model"),
    purpose: text("purpose"),
    spawnedBy: text("spawned_by"),
    follows: text("follows"),
    keptMessages: count("kept_messages"),
    flags: list("flags").map(String),
  });
}
