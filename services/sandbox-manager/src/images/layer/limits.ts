/**
 * Owns how much a layer may cost before it is called a bomb. The numbers leave room for the largest images in
 * use (tens of gigabytes, a few million files) and end what no honest image needs.
 */
import { overLimit } from "../image-errors.js";

export interface LayerLimits {
  /** Uncompressed bytes of the archive: everything read and everything written is below it. */
  readonly bytes: number;
  readonly entries: number;
  /** Uncompressed bytes for each compressed one, counted once the archive is larger than `RATIO_FLOOR_BYTES`. */
  readonly ratio: number;
  /** Length of a single file, holes included. */
  readonly fileBytes: number;
}

export const DEFAULT_LAYER_LIMITS: LayerLimits = {
  bytes: 64 * 1024 ** 3,
  entries: 4_000_000,
  ratio: 250,
  fileBytes: 256 * 1024 ** 3,
};

/** Small layers of zeros compress by any ratio and harm nobody. */
const RATIO_FLOOR_BYTES = 64 * 1024 * 1024;

/** Counts one layer; throws MORTISE_SANDBOX_IMAGE_OVER_LIMIT at the first step beyond a limit. */
export class LayerMeter {
  readonly #limits: LayerLimits;
  compressedBytes = 0;
  bytes = 0;
  entries = 0;

  constructor(limits: LayerLimits) {
    this.#limits = limits;
  }

  decompressed(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes > this.#limits.bytes) throw overLimit("limits.bytes", this.#limits.bytes);
    if (this.bytes > RATIO_FLOOR_BYTES && this.bytes > this.compressedBytes * this.#limits.ratio)
      throw overLimit("limits.ratio", this.#limits.ratio);
  }

  entry(): void {
    this.entries += 1;
    if (this.entries > this.#limits.entries) throw overLimit("limits.entries", this.#limits.entries);
  }

  file(size: number): void {
    if (size > this.#limits.fileBytes) throw overLimit("limits.fileBytes", this.#limits.fileBytes);
  }
}
