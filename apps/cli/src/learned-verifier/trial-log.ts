/**
 * Owns what of a captured trial a learned verifier is shown: the task, and what the main agent said, called and was
 * answered. Left out: system messages and the reasoning of a reply, which say much of the harness and little of the work;
 * sub-agents, whose result the main agent is told; replies the agent never had.
 */
import { MAIN_THREAD } from "@mortise/capture";
import { Delivery, TurnRole } from "@mortise/contracts";
import type { ExportedTrial } from "../export/exported-trial.js";
import type { PolicyText } from "../report/policy-text.js";
import { type ReadTurn, readTranscript } from "../report/transcripts.js";
import type { LogEntry, TrialLog } from "./judge-template.js";

export function trialLog({ turns, seal }: ExportedTrial, text: PolicyText): TrialLog {
  const abandoned = new Set(
    seal.turns.filter(({ delivery }) => delivery === Delivery.ABANDONED).map(({ turn }) => turn),
  );
  const main = readTranscript(turns, text).filter(
    ({ turn }) => turn.thread === MAIN_THREAD && turn.role === TurnRole.TRAIN && !abandoned.has(turn.turn),
  );
  const seen = new Set<string>();
  const asked = (main[0]?.added ?? []).filter(({ role }) => role === "user").map((message) => message.text);
  return {
    task: asked.join("\n\n"),
    entries: main.flatMap((read, at) => [
      ...(at === 0 ? [] : addedEntries(read, seen)),
      { kind: "reply" as const, text: read.reply.text, calls: read.reply.calls },
    ]),
  };
}

/** A history that is rendered whole repeats what was shown before. */
function addedEntries({ added, isWhole }: ReadTurn, seen: Set<string>): LogEntry[] {
  return added.flatMap(({ role, text }): LogEntry[] => {
    if (role === "system" || role === "assistant") return [];
    const kind = role === "tool" ? "result" : role === "unknown" ? "context" : "user";
    const key = `${kind}\n${text}`;
    const isRepeated = isWhole && seen.has(key);
    seen.add(key);
    return isRepeated ? [] : [{ kind, text }];
  });
}
