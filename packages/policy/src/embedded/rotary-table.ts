/** Owns the cos and sin tables of rotary positions in the arena. Computed in float64, stored in float32. */
import type { DecoderConfig } from "../decoder-config.js";
import type { Arena } from "./arena.js";

/** Angle of rotated dimension i at a position: position * theta^(-2i / rotaryDim). */
export function rotaryAngle(position: number, i: number, { ropeTheta, rotaryDim }: DecoderConfig): number {
  return position * ropeTheta ** ((-2 * i) / rotaryDim);
}

export class RotaryTable {
  readonly #arena: Arena;
  readonly #config: DecoderConfig;
  #positions = 0;
  #cosines = 0;
  #sines = 0;

  constructor(arena: Arena, config: DecoderConfig) {
    this.#arena = arena;
    this.#config = config;
  }

  get cosines(): number {
    return this.#cosines;
  }

  get sines(): number {
    return this.#sines;
  }

  /** Makes positions 0 .. count-1 available. Must be called outside `Arena.scoped`: the tables stay. */
  reserve(count: number): void {
    if (count <= this.#positions) return;
    // At least doubled, so that abandoned smaller tables never exceed the current one.
    this.#positions = Math.max(count, 2 * this.#positions, 128);
    const half = this.#config.rotaryDim / 2;
    const cosines = new Float32Array(this.#positions * half);
    const sines = new Float32Array(this.#positions * half);
    for (let position = 0; position < this.#positions; position++) {
      for (let i = 0; i < half; i++) {
        const angle = rotaryAngle(position, i, this.#config);
        cosines[position * half + i] = Math.cos(angle);
        sines[position * half + i] = Math.sin(angle);
      }
    }
    this.#cosines = this.#arena.allocateFloats(cosines);
    this.#sines = this.#arena.allocateFloats(sines);
  }
}
