/**
 * Owns the signals of Codex, which says everything: thread, parent thread, window and kind of request, as
 * headers and once more as metadata. A kind or a source of sub-agent unknown here is not guessed at.
 */
import { isRecord, userAgentOf } from "./facts.js";
import type { CallFacts, SignalReader, StatedPurpose } from "./types.js";

/** What `x-openai-subagent` may name, beside agents that work on the task. */
const SUB_AGENT_PURPOSES: Readonly<Record<string, StatedPurpose>> = {
  compact: "compaction",
  memory_consolidation: "helper",
};

export const readCodex: SignalReader = (facts) => {
  const { headers } = facts;
  const isCodex = userAgentOf(facts).startsWith("codex") || headers.originator?.startsWith("codex") === true;
  if (!isCodex && headers["x-codex-window-id"] === undefined) return undefined;
  const metadata = metadataOf(facts);
  const session = headers["session-id"] ?? metadata("session_id");
  const thread = headers["thread-id"] ?? metadata("thread_id") ?? session;
  const parent = headers["x-codex-parent-thread-id"] ?? metadata("parent_thread_id");
  return {
    harness: "codex",
    namesAgents: thread !== undefined,
    session,
    agent: parent !== undefined || thread !== session ? thread : undefined,
    parentAgent: parent === session ? undefined : parent,
    window: headers["x-codex-window-id"] ?? metadata("window_id"),
    model: facts.model,
    mayCompact: false,
    purpose: purposeOf(facts, metadata("request_kind")),
  };
};

function purposeOf({ headers }: CallFacts, kind: string | undefined): StatedPurpose {
  const stated = SUB_AGENT_PURPOSES[headers["x-openai-subagent"] ?? ""];
  if (stated) return stated;
  if (kind === undefined || kind === "turn") return "agent";
  return kind === "compaction" ? "compaction" : "helper";
}

/** The metadata header as its JSON, in which a value may be looked up. */
function metadataOf({ headers }: CallFacts): (name: string) => string | undefined {
  let metadata: unknown;
  try {
    metadata = JSON.parse(headers["x-codex-turn-metadata"] ?? "");
  } catch {
    // The headers beside it say the most important of it.
  }
  return (name) => {
    const value = isRecord(metadata) ? metadata[name] : undefined;
    return typeof value === "string" ? value : undefined;
  };
}
