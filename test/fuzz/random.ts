/**
 * Owns the randomness of the fuzz suite: a 32-bit generator (splitmix) whose whole state is its seed, so that
 * one number reproduces one body. Not for anything but tests.
 */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** Uniform in [0, 2^32). */
  private next(): number {
    this.state = (this.state + 0x9e3779b9) >>> 0;
    let z = this.state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }

  /** Uniform in [0, below). */
  int(below: number): number {
    return Math.floor((this.next() / 2 ** 32) * below);
  }

  chance(probability: number): boolean {
    return this.next() / 2 ** 32 < probability;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.int(from.length)]!;
  }
}
