/**
 * Owns the signals of every harness that does not name its agents: Qwen Code, Cline, OpenHands,
 * mini-swe-agent, aider, SWE-agent and what comes after them. At most a session is said; threads and roles are
 * told from histories (align.ts, roles.ts).
 */
import { offersTools, userAgentOf } from "./facts.js";
import type { CallFacts, CallSignals } from "./types.js";

/** Harness by the beginning of its user agent, lower case. */
const USER_AGENTS: readonly (readonly [string, string])[] = [
  ["qwencode", "qwen-code"],
  ["qwen-code", "qwen-code"],
  ["cline", "cline"],
  ["openhands", "openhands"],
  ["swe-agent", "swe-agent"],
  ["mini-swe-agent", "mini-swe-agent"],
  ["aider", "aider"],
];

/** Headers in which clients name a conversation. */
const SESSION_HEADERS = ["x-litellm-session-id", "x-session-id", "session-id", "session_id"];

export function readGeneric(facts: CallFacts): CallSignals {
  const userAgent = userAgentOf(facts).toLowerCase();
  const known = USER_AGENTS.find(([beginning]) => userAgent.startsWith(beginning));
  const header = SESSION_HEADERS.find((name) => facts.headers[name] !== undefined);
  return {
    harness: known?.[1] ?? (header === "x-litellm-session-id" ? "openhands" : "generic"),
    namesAgents: false,
    session: header === undefined ? undefined : facts.headers[header],
    agent: undefined,
    parentAgent: undefined,
    window: undefined,
    model: facts.model,
    mayCompact: false,
    purpose: !offersTools(facts) && facts.hostedTools.length > 0 ? "helper" : undefined,
  };
}
