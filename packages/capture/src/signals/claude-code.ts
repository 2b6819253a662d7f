/**
 * Owns the signals of Claude Code: session and agents are headers, purposes are shapes. Its search and fetch
 * helpers offer no tool of its own. Its compaction call looks like a turn of the agent but for one beta, which
 * the call after a refused reply has too, and no call has in a run without experimental betas: history decides
 * (purpose.ts).
 */
import { hasReplies, offersTools, userAgentOf } from "./facts.js";
import type { CallFacts, SignalReader, StatedPurpose } from "./types.js";

const FALLBACK_BETA = "fallback-credit-";

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
    mayCompact: hasFallbackBeta(facts),
    purpose: purposeOf(facts),
  };
};

function hasFallbackBeta({ headers }: CallFacts): boolean {
  const betas = headers["anthropic-beta"]?.split(",") ?? [];
  return betas.some((beta) => beta.trim().startsWith(FALLBACK_BETA));
}

function purposeOf(facts: CallFacts): StatedPurpose | undefined {
  if (offersTools(facts)) return undefined;
  if (facts.hostedTools.length > 0) return "helper";
  const isWholeTask = facts.headers["x-claude-code-agent-id"] !== undefined || hasReplies(facts);
  return isWholeTask ? "side" : "helper";
}
