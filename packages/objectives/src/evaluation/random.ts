/**
 * Owns the seeded generator of resampling (splitmix32): the same seed gives the same interval on any machine.
 * Not for sampling tokens, nor for secrets.
 */
export type Random = () => number;

/** Uniform doubles in [0, 1). */
export function seededRandom(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
  };
}
