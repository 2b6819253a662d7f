/**
 * Owns what every format exports of a trial: the facts, its turns with their seal, its training rows, and what could
 * not be exported with the reason. Reads no files.
 */
import { type AssembledTrial, assembleTrial } from "@mortise/capture";
import { MortiseError, type SessionSealed, type Turn } from "@mortise/contracts";
import type { TrialFact } from "@mortise/evaluation";
import { harnessOf, turnsByTrial } from "../report/behaviours.js";
import type { PolicyText } from "../report/policy-text.js";
import type { RunHistory } from "../report/run-history.js";
import { secretIn } from "./secrets.js";

export interface ExportedTrial {
  readonly run: string;
  readonly fact: TrialFact;
  /** Absent = never verified. */
  readonly reward: number | undefined;
  readonly harness: string;
  readonly harnessVersion: string;
  readonly turns: readonly Turn[];
  readonly seal: SessionSealed;
  readonly assembled: AssembledTrial;
}

export interface LeftOut {
  readonly trial: string;
  readonly reason: string;
}

/** Every wanted trial is in one of both lists. */
export function exportedTrials(
  history: RunHistory,
  wanted: readonly TrialFact[],
  text: PolicyText,
): { readonly trials: ExportedTrial[]; readonly leftOut: LeftOut[] } {
  const turns = turnsByTrial(history.turns);
  const trials: ExportedTrial[] = [];
  const leftOut: LeftOut[] = [];
  for (const fact of wanted) {
    const own = turns.get(fact.trial);
    const seal = history.seals.get(fact.trial);
    if (own === undefined || seal === undefined) {
      leftOut.push({
        trial: fact.trial,
        reason: own === undefined ? "it has no turn" : "its session is not sealed",
      });
      continue;
    }
    const assembled = assembledOrReason(own, seal);
    const secret = typeof assembled === "string" ? undefined : secretOf(own, assembled, text);
    if (typeof assembled === "string") leftOut.push({ trial: fact.trial, reason: assembled });
    else if (secret !== undefined) leftOut.push({ trial: fact.trial, reason: `it holds ${secret}` });
    else trials.push({ ...factsOf(history, fact, own), seal, assembled });
  }
  return { trials, leftOut };
}

function factsOf(history: RunHistory, fact: TrialFact, turns: readonly Turn[]) {
  const ended = history.sandboxes.get(fact.trial)?.fact;
  const version = ended?.case === "ended" ? ended.value.harnessVersion : "";
  return {
    run: history.run,
    fact,
    reward: history.verdicts.get(fact.trial)?.reward,
    harness: harnessOf(turns, history),
    harnessVersion: version === "" ? "unknown" : version,
    turns: [...turns].sort((a, b) => a.index - b.index),
  };
}

/** Captures that contradict each other are no reason to leave out the rest of a run. */
function assembledOrReason(turns: readonly Turn[], seal: SessionSealed): AssembledTrial | string {
  try {
    return assembleTrial(turns, seal);
  } catch (error) {
    if (error instanceof MortiseError && error.code === "MORTISE_CAPTURE_INVALID") return error.message;
    throw error;
  }
}

/** Rows hold every context whose tokens are trained; a turn that is in no row is looked at by itself. */
function secretOf(turns: readonly Turn[], assembled: AssembledTrial, text: PolicyText): string | undefined {
  for (const { ids } of assembled.sequences) {
    const found = secretIn(text.text(ids));
    if (found !== undefined) return found;
  }
  return turns.map((turn) => secretIn(text.textOfTurn(turn))).find((found) => found !== undefined);
}
