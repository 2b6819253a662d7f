/**
 * Owns the signals of Claude Code: session and agents are headers, purposes are shapes. Its search and fetch
 * helpers offer no tool of its own; its compaction call looks like a turn of the agent but for one beta, which
 * a run without experimental betas lacks (then history tells, see compaction.ts).
 */
import { hasReplies, offersTools, userAgentOf } from "./facts.js";
import type { CallFacts, SignalReader, StatedPurpose } from "./types.js";

const COMPACTION_BETA = "fallback-credit-";

export const readClaudeCode: SignalReader = (facts) => {
  const { headers } = facts;
  const session = headers["x-claude-code-session-id"];
  if (session === undefined && !userAgentOf(facts).startsWith("claude-cli/")) return undefined;
  return {
    harness: "claude-code",
    namesAgents: true,
    session,
    agent: headers["x-claude-code-agent-id"],
    parentAgent: headers["x-claude-code-parent-agent-id"],
    window: undefined,
    model: facts.model,
    purpose: purposeOf(facts),
  };
};

function purposeOf(facts: CallFacts): StatedPurpose | undefined {
  const betas = facts.headers["anthropic-beta"]?.split(",") ?? [];
  if (betas.some((beta) => beta.trim().startsWith(COMPACTION_BETA))) return "compaction";
  if (offersTools(facts)) return undefined;
  if (facts.hostedTools.length > 0) return "helper";
  const isWholeTask = facts.headers["x-claude-code-agent-id"] !== undefined || hasReplies(facts);
  return isWholeTask ? "side" : "helper";
}
