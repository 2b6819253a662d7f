/**
 * Owns the role policy of threads: whose tokens are trained when a harness holds several conversations (C4).
 * What a call is for is purpose.ts's; the turns of a thread share the role of its first.
 */
import { TurnRole } from "@mortise/contracts";
import type { CallPurpose } from "./call.js";
import type { Thread } from "./call-log.js";
import type { ThreadOrigin } from "./threads.js";

export interface RoleDecision {
  readonly role: TurnRole;
  readonly reason: string;
}

const AGENTS: Readonly<Record<ThreadOrigin, RoleDecision>> = {
  main: { role: TurnRole.TRAIN, reason: "main" },
  "sub-agent": { role: TurnRole.TRAIN, reason: "sub-agent" },
  // Never trained by guess: what is unknown may be a grader, a summary, or another user's conversation.
  unknown: { role: TurnRole.EXCLUDED, reason: "quarantined: its role cannot be told" },
};

const HELPERS: Readonly<Record<Exclude<CallPurpose, "agent">, RoleDecision>> = {
  compaction: { role: TurnRole.CONTEXT_ONLY, reason: "compaction" },
  title: { role: TurnRole.EXCLUDED, reason: "title" },
  helper: { role: TurnRole.EXCLUDED, reason: "helper beside an agent" },
};

/** @param origin of a new thread; an agent whose thread has turns keeps the role it has */
export function roleOf(
  purpose: CallPurpose,
  thread: Thread | undefined,
  origin: ThreadOrigin | undefined,
): RoleDecision {
  if (purpose !== "agent") return HELPERS[purpose];
  const first = thread?.calls.find((call) => call.purpose === "agent");
  if (first) return { role: first.role, reason: first.roleReason };
  return AGENTS[origin ?? (thread?.agent === undefined ? "main" : "sub-agent")];
}
