/**
 * Owns turning what is recorded of trials into the facts a report counts. Does not read records (run-history.ts) and
 * does not count (packages/evaluation).
 */
import { Outcome, Stage, TerminationReason, type Verdict as VerdictRecord } from "@mortise/contracts";
import type { TrialFact, Verdict } from "@mortise/evaluation";
import type { RunHistory } from "./run-history.js";

export const TRAINING = "training";

/** By which of several attempts one is chosen: the shortest, or a named component of the verdict. */
export const FEWEST_TOKENS = "fewest-tokens";

const VERDICTS: Readonly<Record<Outcome, Verdict | undefined>> = {
  [Outcome.UNSPECIFIED]: undefined,
  [Outcome.RESOLVED]: "resolved",
  [Outcome.UNRESOLVED]: "unresolved",
  [Outcome.INVALID_INFRA]: "invalid(infra)",
  [Outcome.INVALID_TASK]: "invalid(task)",
  [Outcome.INVALID_TAMPER]: "invalid(tamper)",
};

/** @param score FEWEST_TOKENS, or the name of a component of the verdicts */
export function trialFacts(history: RunHistory, score: string = FEWEST_TOKENS): TrialFact[] {
  const { closed, verdicts, regraded } = history;
  return closed.map((transition): TrialFact => {
    const { trial } = transition;
    const verdict = verdicts.get(trial);
    const seal = transition.seal ?? history.seals.get(trial);
    // The scheduler's word, which knows of failures around the verifier; a later judgement stands above it.
    const outcome = regraded.has(trial) ? verdict?.outcome : transition.outcome;
    const sampledTokens = seal === undefined ? undefined : Number(seal.sampledTokens);
    return {
      trial,
      set: transition.evaluation ? transition.group : TRAINING,
      // An evaluation is no group: what shares a baseline there is the attempts at one task.
      group: transition.evaluation ? `${transition.group}/${transition.task?.id ?? ""}` : transition.group,
      slot: transition.slotInGroup,
      task: transition.task?.id ?? "",
      termination: spelled(TerminationReason[transition.termination]),
      verdict: VERDICTS[outcome ?? Outcome.UNSPECIFIED],
      retry: transition.retry,
      sampledTokens,
      turns: seal?.turns.length,
      stages: transition.stages.map(({ stage, wallMs }) => ({ stage: spelled(Stage[stage]), wallMs })),
      score: score === FEWEST_TOKENS ? negated(sampledTokens) : componentOf(verdict, score),
    };
  });
}

/** Sets in the order a run goes through them: by the time their first trial ended. */
export function setsOf(facts: readonly TrialFact[]): string[] {
  return [...new Set(facts.map(({ set }) => set))];
}

function componentOf(verdict: VerdictRecord | undefined, name: string): number | undefined {
  return verdict?.components.find((one) => one.name === name && one.turn === "")?.value;
}

function negated(value: number | undefined): number | undefined {
  return value === undefined ? undefined : -value;
}

/** An enum's name as people write it. */
function spelled(name: string | undefined): string {
  return (name ?? "unspecified").toLowerCase().replaceAll("_", "-");
}
