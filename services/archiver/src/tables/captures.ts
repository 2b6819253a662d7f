/** Owns the tables of CAPTURES: turns with their exact ids, and seals. */
import { toJson } from "@bufbuild/protobuf";
import {
  FinishReason,
  SampledToolCallSchema,
  SamplingSchema,
  type SessionSealed,
  SessionSealedSchema,
  SpanSchema,
  type Turn,
  TurnRelation,
  TurnRole,
} from "@mortise/contracts";
import { recordColumn, sequenceColumn, type Table } from "./table.js";

/**
 * One row a turn. Ids are little-endian int32, log-probabilities little-endian float32, as captured (C1);
 * log_probabilities is null when the engine gave none (C10).
 */
export const TURNS: Table<Turn> = {
  name: "turns",
  columns: [
    sequenceColumn(),
    { name: "trial", type: "STRING", of: (turn) => turn.trial },
    { name: "session", type: "STRING", of: (turn) => turn.session },
    { name: "thread", type: "STRING", of: (turn) => turn.thread },
    { name: "turn", type: "STRING", of: (turn) => turn.turn },
    { name: "index", type: "INT32", of: (turn) => turn.index },
    { name: "parent", type: "STRING", of: (turn) => turn.parent },
    { name: "relation", type: "STRING", of: (turn) => TurnRelation[turn.relation] },
    { name: "role", type: "STRING", of: (turn) => TurnRole[turn.role] },
    { name: "role_reason", type: "STRING", of: (turn) => turn.roleReason },
    {
      name: "message_digests",
      type: "JSON",
      of: (turn) => turn.messageDigests.map((digest) => Buffer.from(digest).toString("hex")),
    },
    { name: "tools_digest", type: "BYTE_ARRAY", of: (turn) => turn.toolsDigest },
    { name: "body_digest", type: "BYTE_ARRAY", of: (turn) => turn.bodyDigest },
    { name: "text_digest", type: "BYTE_ARRAY", of: (turn) => turn.textDigest },
    { name: "prefix_length", type: "INT32", of: (turn) => turn.prefixLength },
    { name: "suffix_ids", type: "BYTE_ARRAY", of: (turn) => turn.suffixIds },
    { name: "sampled_ids", type: "BYTE_ARRAY", of: (turn) => turn.sampledIds },
    {
      name: "log_probabilities",
      type: "BYTE_ARRAY",
      of: (turn) => (turn.logProbabilities.length === 0 ? undefined : turn.logProbabilities),
    },
    { name: "spans", type: "JSON", of: (turn) => turn.spans.map((span) => toJson(SpanSchema, span)) },
    { name: "finish", type: "STRING", of: (turn) => FinishReason[turn.finish] },
    {
      name: "tool_calls",
      type: "JSON",
      of: (turn) => turn.toolCalls.map((call) => toJson(SampledToolCallSchema, call)),
    },
    { name: "bytes_delivered", type: "INT64", of: (turn) => turn.bytesDelivered },
    { name: "requested_sampling", type: "JSON", of: (turn) => samplingOf(turn.requestedSampling) },
    { name: "applied_sampling", type: "JSON", of: (turn) => samplingOf(turn.appliedSampling) },
    { name: "history_policy", type: "STRING", of: (turn) => turn.historyPolicy },
    { name: "dialect", type: "STRING", of: (turn) => turn.dialect },
    { name: "engine", type: "STRING", of: (turn) => turn.engine },
    { name: "started_at_ms", type: "INT64", of: (turn) => turn.startedAtMs },
    { name: "ended_at_ms", type: "INT64", of: (turn) => turn.endedAtMs },
    { name: "routing_object", type: "STRING", of: (turn) => turn.routingObject },
    { name: "evaluation", type: "BOOLEAN", of: (turn) => turn.evaluation },
    { name: "harness", type: "STRING", of: (turn) => turn.harness },
    { name: "agent", type: "STRING", of: (turn) => turn.agent },
    { name: "model", type: "STRING", of: (turn) => turn.model },
    { name: "purpose", type: "STRING", of: (turn) => turn.purpose },
    { name: "spawned_by", type: "STRING", of: (turn) => turn.spawnedBy },
    { name: "follows", type: "STRING", of: (turn) => turn.follows },
    { name: "kept_messages", type: "INT32", of: (turn) => turn.keptMessages },
    { name: "flags", type: "JSON", of: (turn) => turn.flags },
  ],
};

export const SEALS: Table<SessionSealed> = {
  name: "seals",
  columns: [
    sequenceColumn(),
    { name: "trial", type: "STRING", of: (seal) => seal.trial },
    { name: "evaluation", type: "BOOLEAN", of: (seal) => seal.evaluation },
    { name: "turns", type: "INT32", of: (seal) => seal.turns.length },
    { name: "sampled_tokens", type: "INT64", of: (seal) => seal.sampledTokens },
    { name: "lowest_version", type: "INT64", of: (seal) => seal.lowestVersion },
    { name: "highest_version", type: "INT64", of: (seal) => seal.highestVersion },
    recordColumn(SessionSealedSchema),
  ],
};

function samplingOf(sampling: Turn["appliedSampling"]): unknown {
  return sampling === undefined ? undefined : toJson(SamplingSchema, sampling);
}
