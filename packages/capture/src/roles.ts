/**
 * Owns the role policy of threads: whose tokens are trained when a harness holds several conversations (C4).
 * A thread's role is fixed by its first request and inherited by the turns that extend it.
 *
 * Rule: an agent speaks with tools. A thread without tools beside one with tools is a title, a summary or a
 * search helper: captured, accounted, not trained. A session whose threads never have tools is a harness
 * that puts its tools into text, and is trained.
 */
import { type Turn, TurnRelation, TurnRole } from "@mortise/contracts";

export interface RoleDecision {
  readonly role: TurnRole;
  readonly reason: string;
  readonly relation: TurnRelation;
}

/**
 * Role of a request.
 * @param turns turns of the session so far
 * @param request thread and relation it was attached with, and whether it offers tools
 */
export function decideRole(
  turns: readonly Turn[],
  request: { thread: string; relation: TurnRelation; hasTools: boolean; noToolsDigest: Uint8Array },
): RoleDecision {
  const earlier = turns.find((turn) => turn.thread === request.thread);
  if (earlier) return { role: earlier.role, reason: earlier.roleReason, relation: request.relation };
  const train = (reason: string) => ({ role: TurnRole.TRAIN, reason, relation: request.relation });
  if (turns.length === 0) return train("main");
  if (request.hasTools) return train("sub-agent");
  const noTools = Buffer.from(request.noToolsDigest);
  if (turns.every((turn) => noTools.equals(turn.toolsDigest))) return train("conversation");
  return { role: TurnRole.EXCLUDED, reason: "no tools beside an agent", relation: TurnRelation.AUXILIARY };
}
