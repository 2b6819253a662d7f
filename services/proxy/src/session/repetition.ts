/**
 * Owns recognising a reply that goes round in circles: the same few tokens again and again up to its end. A policy
 * that does so has usually broken down, and after new weights it is the first that shows. Says so; decides nothing.
 */

/** Longest circle looked for, tokens: a line of code or a sentence. */
const MAX_PERIOD = 64;
/** Rounds that count as going in circles; tables and data repeat themselves a few times. */
const MIN_ROUNDS = 16;
/** Tokens that a circle of few takes at least: a ruler of dashes is none. */
const MIN_TOKENS = 128;

/**
 * The length of the circle a reply ends in; undefined when it ends in none.
 * @param ids sampled ids without the end-of-turn token
 */
export function endlessPeriod(ids: Int32Array): number | undefined {
  for (let period = 1; period <= MAX_PERIOD; period++) {
    const length = Math.max(period * MIN_ROUNDS, MIN_TOKENS);
    if (ids.length >= length && isPeriodic(ids.subarray(ids.length - length), period)) return period;
  }
  return undefined;
}

function isPeriodic(ids: Int32Array, period: number): boolean {
  for (let at = ids.length - 1; at >= period; at--) if (ids[at] !== ids[at - period]) return false;
  return true;
}
