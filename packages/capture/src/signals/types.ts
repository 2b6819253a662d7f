/**
 * Owns what a call says about the conversation it belongs to, before its messages are compared: which harness,
 * which of its agents, and for what purpose. Comparing histories is align.ts's, policy is roles.ts's.
 */
import type { Conversation } from "../conversation.js";

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

/**
 * What a call is for. `side`: not a turn of an agent, but whether it is a title, a summary or another helper
 * only the history tells. Undefined: only the history tells anything.
 */
export type StatedPurpose = "agent" | "compaction" | "title" | "helper" | "side";

export interface CallSignals {
  /** `claude-code`, `opencode`, `codex`, `pi`, …; `generic` when none is recognised. */
  readonly harness: string;
  /** Whether the harness names its agents: then a call that names none is its main agent's. */
  readonly namesAgents: boolean;
  /** The harness's own name of its session; undefined when it does not say. */
  readonly session: string | undefined;
  /** Key of the agent within the session; undefined when the harness does not say, or for its main agent. */
  readonly agent: string | undefined;
  /** Key of the agent that spawned it; undefined for the main agent's own sub-agents. */
  readonly parentAgent: string | undefined;
  /** Names the stretch of an agent's history between two compactions; undefined when it does not say. */
  readonly window: string | undefined;
  readonly model: string | undefined;
  /** The call carries a mark that compactions carry, though not they alone. */
  readonly mayCompact: boolean;
  /** What the call is for, where headers or shape alone tell. */
  readonly purpose: StatedPurpose | undefined;
}

/** A harness that says nothing about itself: everything is told from histories. */
export const NO_SIGNALS: CallSignals = {
  harness: "generic",
  namesAgents: false,
  session: undefined,
  agent: undefined,
  parentAgent: undefined,
  window: undefined,
  model: undefined,
  mayCompact: false,
  purpose: undefined,
};

/** Recognises one harness; undefined when the call is another's. */
export type SignalReader = (facts: CallFacts) => CallSignals | undefined;

/** Whose call it is: agents that ask the same at the same time are not each other's retries (C6). */
export function callerOf({ session, agent }: CallSignals): string {
  return JSON.stringify([session ?? "", agent ?? ""]);
}
