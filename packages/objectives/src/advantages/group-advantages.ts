/**
 * Owns the advantage of each trial of a group: how much better its reward is than its siblings'.
 * Does not own which members are valid (the termination policy decides, DESIGN §6) nor token weights.
 *
 * With r over the n valid members, m their mean and s their standard deviation:
 *
 *   grpo    A = (r − m) / (s + eps)        Shao et al. 2024, DeepSeekMath, eq. 3; Bessel s by default
 *   drgrpo  A = r − m                      Liu et al. 2025, "Understanding R1-Zero-like training"
 *   rloo    A = n/(n−1) · (r − m)          Ahmadian et al. 2024; equals r minus the mean of the others
 *   success A = 1 if r > 0, else 0         imitation of one's own successes; 0 = not in the loss
 *
 * Rules that hold for every estimator:
 *  - an invalid member (infrastructure failure) enters neither m nor s, and its advantage is 0;
 *  - fewer than two valid members, or rewards equal within `equalTolerance`, drop the whole group with
 *    exact zeros. Equality is tested on the rewards before dividing: float rewards that are all equal leave
 *    a rounding residue in r − m which a tiny eps would blow up to a full-size advantage.
 */
import { standardDeviation, sum } from "../statistics.js";

export type AdvantageEstimator = "grpo" | "drgrpo" | "rloo" | "success";

export interface GroupMember {
  readonly reward: number;
  /** False for a member whose outcome says nothing about the policy. */
  readonly isValid: boolean;
}

export interface AdvantageOptions {
  readonly estimator: AdvantageEstimator;
  /** Added to the standard deviation (grpo only). */
  readonly epsilon?: number;
  /** Degrees of freedom removed from the standard deviation: 1 = Bessel (default), 0 = population. */
  readonly ddof?: 0 | 1;
  /** Largest spread max − min at which rewards count as equal. */
  readonly equalTolerance?: number;
}

export type DropReason = "too-few-valid" | "zero-variance";

export interface GroupAdvantages {
  /** One per member, in member order. All exactly 0 when the group is dropped. */
  readonly advantages: readonly number[];
  readonly dropped: DropReason | null;
  readonly nValid: number;
  /** Mean and standard deviation over valid members; `null` where undefined (C10). */
  readonly mean: number | null;
  readonly std: number | null;
}

const DEFAULT_EPSILON = 1e-6;
const DEFAULT_EQUAL_TOLERANCE = 1e-6;

/** Advantages of one group. Throws RangeError for a non-finite reward of a valid member. */
export function groupAdvantages(members: readonly GroupMember[], options: AdvantageOptions): GroupAdvantages {
  const rewards = members.filter((member) => member.isValid).map((member) => member.reward);
  if (!rewards.every(Number.isFinite))
    throw new RangeError("a valid group member has a reward that is not finite");
  const nValid = rewards.length;
  const mean = nValid === 0 ? null : sum(rewards) / nValid;
  const std = standardDeviation(rewards, options.ddof ?? 1);
  const dropped = dropReason(rewards, options.equalTolerance ?? DEFAULT_EQUAL_TOLERANCE);
  if (dropped !== null || mean === null || std === null) {
    return { advantages: members.map(() => 0), dropped: dropped ?? "too-few-valid", nValid, mean, std };
  }
  const advantageOf = estimate(options, { nValid, mean, std });
  const advantages = members.map((member) => (member.isValid ? advantageOf(member.reward) : 0));
  return { advantages, dropped: null, nValid, mean, std };
}

function dropReason(rewards: readonly number[], equalTolerance: number): DropReason | null {
  if (rewards.length < 2) return "too-few-valid";
  const spread = Math.max(...rewards) - Math.min(...rewards);
  return spread <= equalTolerance ? "zero-variance" : null;
}

function estimate(
  options: AdvantageOptions,
  { nValid, mean, std }: { nValid: number; mean: number; std: number },
): (reward: number) => number {
  switch (options.estimator) {
    case "grpo":
      return (reward) => (reward - mean) * (1 / (std + (options.epsilon ?? DEFAULT_EPSILON)));
    case "drgrpo":
      return (reward) => reward - mean;
    case "rloo":
      return (reward) => (reward - mean) * (nValid / (nValid - 1));
    case "success":
      return (reward) => (reward > 0 ? 1 : 0);
  }
}
