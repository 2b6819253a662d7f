/**
 * Owns the signals of OpenCode: every agent has a session of its own, and a sub-agent's names its parent's. A
 * call without tools is a title or a compaction; a title asks with two messages of the user, while one message
 * may be either, which history tells.
 */
import { hasReplies, offersTools, userAgentOf } from "./facts.js";
import type { CallFacts, SignalReader, StatedPurpose } from "./types.js";

export const readOpenCode: SignalReader = (facts) => {
  const { headers } = facts;
  if (!userAgentOf(facts).startsWith("opencode/")) return undefined;
  const session = headers["x-session-id"] ?? headers["x-session-affinity"];
  const parent = headers["x-parent-session-id"];
  return {
    harness: "opencode",
    namesAgents: true,
    session,
    agent: parent === undefined ? undefined : session,
    parentAgent: parent,
    window: undefined,
    model: facts.model,
    mayCompact: false,
    purpose: purposeOf(facts),
  };
};

function purposeOf(facts: CallFacts): StatedPurpose {
  if (offersTools(facts)) return "agent";
  const spoken = facts.conversation.messages.filter((message) => message.role !== "system");
  return spoken.length > 1 && !hasReplies(facts) ? "title" : "side";
}
