/**
 * Owns the signals of pi: it speaks through the vendors' own clients and names itself nowhere, but it always
 * offers the same few tools, and on Responses its session. A call without tools is its compaction.
 */
import { isVendorClient, offersTools } from "./facts.js";
import type { CallFacts, SignalReader } from "./types.js";

const TOOLS = ["read", "bash", "edit", "write"];

export const readPi: SignalReader = (facts) => {
  if (!isVendorClient(facts) || !offersPiTools(facts)) return undefined;
  return {
    harness: "pi",
    namesAgents: false,
    session: facts.headers.session_id,
    agent: undefined,
    parentAgent: undefined,
    window: undefined,
    model: facts.model,
    mayCompact: false,
    purpose: "agent",
  };
};

function offersPiTools(facts: CallFacts): boolean {
  const names = facts.conversation.tools.map((tool) => tool.name);
  return offersTools(facts) && TOOLS.every((name) => names.includes(name));
}
