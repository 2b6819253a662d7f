/**
 * Owns the one WebAssembly memory of an engine: weights, gradients, moments and activations live in it side by
 * side. Allocation is a moving mark; a caller that works for the length of a call takes the mark and gives it back.
 * Does not track what is stored where.
 */
import { MortiseError } from "@mortise/contracts";
import { instantiateKernels, type Kernels } from "./kernels.js";

const WASM_PAGE_BYTES = 65_536;
const MAX_WASM_PAGES = 65_536;
/** Below lie the static tables of the kernels. */
const FIRST_BYTE = WASM_PAGE_BYTES;
const ALIGN_BYTES = 64;
/** Tiles may read, never write, a little past the end of a matrix. */
const SLACK_BYTES = 1024;

export class Arena {
  readonly kernels: Kernels;
  readonly #memory: WebAssembly.Memory;
  #next = FIRST_BYTE;

  constructor() {
    this.#memory = new WebAssembly.Memory({ initial: 16, maximum: MAX_WASM_PAGES });
    this.kernels = instantiateKernels(this.#memory);
  }

  /** Reserves `count` 32-bit cells (float or integer). Contents are undefined. @returns byte address */
  allocate(count: number): number {
    const address = this.#next;
    this.#next = Math.ceil((address + count * 4) / ALIGN_BYTES) * ALIGN_BYTES;
    const missing = this.#next + SLACK_BYTES - this.#memory.buffer.byteLength;
    if (missing > 0) this.#grow(Math.ceil(missing / WASM_PAGE_BYTES));
    return address;
  }

  #grow(pages: number): void {
    const held = this.#memory.buffer.byteLength / WASM_PAGE_BYTES;
    if (held + pages > MAX_WASM_PAGES) {
      throw new MortiseError({
        code: "MORTISE_POLICY_UNSUPPORTED",
        message: "the embedded engine's 4 GiB of memory are used up.",
        fix: "Use a smaller model, shorter sequences, smaller micro-batches, or the tfjs backend.",
      });
    }
    // An eighth more than needed, so that a growing batch does not grow the memory every step.
    this.#memory.grow(Math.min(Math.max(pages, held >> 3), MAX_WASM_PAGES - held));
  }

  allocateFloats(values: Float32Array): number {
    const address = this.allocate(values.length);
    this.floats(address, values.length).set(values);
    return address;
  }

  allocateInts(values: ArrayLike<number>): number {
    const address = this.allocate(values.length);
    this.ints(address, values.length).set(values);
    return address;
  }

  allocateZeros(count: number): number {
    const address = this.allocate(count);
    this.floats(address, count).fill(0);
    return address;
  }

  /** Runs `work`; everything it allocates is free afterwards. */
  scoped<T>(work: () => T): T {
    const mark = this.#next;
    try {
      return work();
    } finally {
      this.#next = mark;
    }
  }

  /** A view that the next allocation may invalidate: read or write at once, do not keep. */
  floats(address: number, count: number): Float32Array {
    return new Float32Array(this.#memory.buffer, address, count);
  }

  ints(address: number, count: number): Int32Array {
    return new Int32Array(this.#memory.buffer, address, count);
  }

  copy(to: number, from: number, count: number): void {
    const cells = this.floats(0, this.#memory.buffer.byteLength / 4);
    cells.copyWithin(to / 4, from / 4, from / 4 + count);
  }
}
