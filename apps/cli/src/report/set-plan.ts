/** Owns how many places each set of a run was to have, as its records say. Does not know what came of them. */
import type { SetPlan } from "@mortise/evaluation";
import type { RunHistory } from "./run-history.js";
import { TRAINING } from "./trial-facts.js";

export function planOf(history: Pick<RunHistory, "config" | "evaluated">, set: string): SetPlan {
  const { config, evaluated } = history;
  if (config === undefined) return { places: evaluated.get(set) };
  const { rollout, trainer, evaluation } = config;
  const { maxRetries } = rollout;
  if (set !== TRAINING) return { places: evaluation.attempts, maxRetries };
  // With refill a dropped group is replaced by another: how many there will be, nobody knows before.
  if (trainer.refillDropped) return { maxRetries };
  return { places: trainer.steps * trainer.groupsPerStep * rollout.groupSize, maxRetries };
}
