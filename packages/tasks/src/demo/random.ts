/**
 * Owns the seeded randomness of task generation and demonstrations: the same seed gives the same draw on every
 * platform. Does not serve sampling from a policy.
 */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [0, bound). */
  below(bound: number): number;
}

/** A generator for one purpose: different labels under one seed give independent sequences. */
export function seededRandom(seed: number, label: string): Random {
  let state = fnv1a(`${seed}:${label}`);
  // mulberry32: one 32-bit word of state, enough for shuffling a few thousand tasks.
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  };
  return { next, below: (bound) => Math.floor(next() * bound) };
}

/** A shuffled copy (Fisher–Yates). */
export function shuffled<T>(values: readonly T[], random: Random): T[] {
  const copy = [...values];
  for (let last = copy.length - 1; last > 0; last--) {
    const other = random.below(last + 1);
    [copy[last], copy[other]] = [copy[other] as T, copy[last] as T];
  }
  return copy;
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash | 0;
}
