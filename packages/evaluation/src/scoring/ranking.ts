/**
 * Owns how well a score ranks resolved attempts above unresolved ones: the area under the ROC curve as the share of
 * pairs in the right order, ties as half (Mann and Whitney 1947; Hanley and McNeil 1982). Does not own scores.
 */
import type { ScoredAttempt } from "@mortise/objectives";
import type { ScoredTask } from "../statistics/scaling.js";

/** Pairs of a resolved and an unresolved attempt. */
interface Pairs {
  readonly count: number;
  /** Those in which the resolved attempt has the higher score; a tie counts a half. */
  readonly inOrder: number;
}

/** Over all pairs, of one task or of two. `null` where all attempts have the same outcome. */
export function rocAuc(attempts: readonly ScoredAttempt[]): number | null {
  return shareOf(pairsOf(attempts));
}

/**
 * Over pairs of the same task only, every pair alike: what choosing among attempts at one task can gain from. A score
 * that tells hard tasks from easy ones and nothing else is at ½ here, whatever `rocAuc` is. `null` without such a pair.
 */
export function withinTaskAuc(tasks: readonly ScoredTask[]): number | null {
  const pairs = tasks.map(({ attempts }) => pairsOf(attempts));
  return shareOf({
    count: pairs.reduce((sum, { count }) => sum + count, 0),
    inOrder: pairs.reduce((sum, { inOrder }) => sum + inOrder, 0),
  });
}

function shareOf({ count, inOrder }: Pairs): number | null {
  return count === 0 ? null : inOrder / count;
}

/** In one pass over the attempts by rising score. */
function pairsOf(attempts: readonly ScoredAttempt[]): Pairs {
  const rising = [...attempts].sort((a, b) => a.score - b.score);
  const nResolved = attempts.filter(({ isResolved }) => isResolved).length;
  let inOrder = 0;
  let unresolvedBelow = 0;
  for (let at = 0; at < rising.length; ) {
    let resolved = 0;
    let unresolved = 0;
    for (const { score } = rising[at]!; at < rising.length && rising[at]!.score === score; at++) {
      if (rising[at]!.isResolved) resolved += 1;
      else unresolved += 1;
    }
    inOrder += resolved * (unresolvedBelow + unresolved / 2);
    unresolvedBelow += unresolved;
  }
  return { count: nResolved * (attempts.length - nResolved), inOrder };
}
