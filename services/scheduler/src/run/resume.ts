/**
 * Owns what is asked again after a restart: for every live trial the one thing its stage is waiting for. Each ask
 * is idempotent (same session, same message id, same lease), so asking what was already asked is harmless.
 */
import { afterSeal, type TrialStep, watchOf } from "../trial/reducer.js";
import type { Trial } from "../trial/trial.js";
import type { Effect } from "./effects.js";
import type { RunPlan } from "./plan.js";
import type { RunDraft } from "./state.js";
import { trialRules } from "./trial-rules.js";

/** Emits the asks of all live trials; the draft is live already. `commit` applies a step to the run. */
export function resumeTrials(
  draft: RunDraft,
  plan: RunPlan,
  commit: (trial: Trial, step: TrialStep) => void,
): void {
  for (const trial of [...draft.state.trials.values()]) {
    if (trial.stage === "sealing" && trial.seal !== undefined) {
      // The log ends with SEALED, which is the first effect of this step: only the rest is new.
      const step = afterSeal(trial, trialRules(draft.state, plan));
      commit(trial, { ...step, effects: step.effects.slice(1) });
    } else {
      draft.emit([...askOf(trial), ...watchOf(trial, plan)]);
    }
  }
}

function askOf(trial: Trial): Effect[] {
  switch (trial.stage) {
    case "launched":
    case "opening":
      return [{ kind: "open", trial }];
    case "running":
      return [{ kind: "start-agent", trial }];
    case "sealing":
      return [{ kind: "seal", trial }];
    case "verifying":
      return [{ kind: "verify", trial }];
    default:
      return [];
  }
}
