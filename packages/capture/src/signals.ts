/**
 * Owns what a call says about the conversation it belongs to, before its messages are compared: which harness,
 * which of its agents, and for what purpose. Reads headers and shapes only; comparing histories is the turn
 * tree's, policy is roles.ts.
 */
import type { Conversation } from "./conversation.js";

/** What a request is, apart from its messages. */
export interface CallFacts {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly dialect: string;
  readonly conversation: Conversation;
  /** Hosted tools the request offered, by type; they are not in the conversation. */
  readonly hostedTools: readonly string[];
  readonly model: string | undefined;
}

export interface CallSignals {
  /** `claude-code`, `opencode`, `codex`, `pi`, …; `generic` when none is recognised. */
  readonly harness: string;
  /** Key of the agent within the session; undefined when the harness does not say, or for its main agent. */
  readonly agent: string | undefined;
  /** Key of the agent that spawned it; undefined for the main agent's own sub-agents. */
  readonly parentAgent: string | undefined;
  /** What the call is for, where headers or shape alone tell. */
  readonly purpose: "agent" | "compaction" | "title" | "helper" | undefined;
}

/** A harness that says nothing about itself: everything is told from histories. */
export const NO_SIGNALS: CallSignals = {
  harness: "generic",
  agent: undefined,
  parentAgent: undefined,
  purpose: undefined,
};
