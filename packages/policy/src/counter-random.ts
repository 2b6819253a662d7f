/**
 * Owns reproducible random numbers: a value is a pure function of (key, index), so it does not depend on how many
 * were drawn before, or by whom. Uses SHA-256 of the key once, then a 64-bit mixer (the finaliser of SplitMix64).
 */
import { createHash } from "node:crypto";

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;

function mix(value: bigint): bigint {
  let z = value & MASK;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

export class CounterRandom {
  readonly #seed: bigint;

  constructor(key: string) {
    this.#seed = createHash("sha256").update(key).digest().readBigUInt64LE(0);
  }

  /** Uniform in (0, 1): the middle of one of 2^53 equal cells, so that neither end occurs. */
  uniform(index: number): number {
    const bits = mix(this.#seed + GOLDEN * (BigInt(index) + 1n)) >> 11n;
    return (Number(bits) + 0.5) / 2 ** 53;
  }

  /** Standard normal (Box–Muller on uniforms 2 index and 2 index + 1). */
  normal(index: number): number {
    const radius = Math.sqrt(-2 * Math.log(this.uniform(2 * index)));
    return radius * Math.cos(2 * Math.PI * this.uniform(2 * index + 1));
  }
}
