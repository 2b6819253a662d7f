/**
 * Owns loading dist/engine.wasm (built from assembly/) over a given memory, and the types of its exports.
 * Pointers are byte addresses; matrix sizes and leading dimensions count floats. See assembly/ for each kernel.
 */
import { readFileSync } from "node:fs";
import { MortiseError } from "@mortise/contracts";

export interface Kernels {
  gemm(
    a: number,
    lda: number,
    packed: number,
    c: number,
    ldc: number,
    m: number,
    n: number,
    k: number,
    accumulate: boolean,
  ): void;
  packColumns(w: number, rows: number, cols: number, out: number): void;
  packRows(x: number, ld: number, rows: number, cols: number, paddedRows: number, out: number): void;
  transpose(x: number, ld: number, rows: number, cols: number, out: number, ldOut: number): void;
  addBias(y: number, ld: number, bias: number, rows: number, n: number): void;
  addColumnSums(y: number, ld: number, rows: number, n: number, out: number): void;
  embed(table: number, ids: number, rows: number, n: number, x: number): void;
  embedBackward(dTable: number, ids: number, rows: number, n: number, dx: number): void;
  rmsNorm(
    x: number,
    ldx: number,
    w: number,
    y: number,
    ldy: number,
    rows: number,
    groups: number,
    n: number,
    eps: number,
    inverse: number,
  ): void;
  rmsNormBackward(
    x: number,
    ldx: number,
    w: number,
    inverse: number,
    dy: number,
    lddy: number,
    dx: number,
    lddx: number,
    dw: number,
    rows: number,
    groups: number,
    n: number,
    accumulate: boolean,
  ): void;
  rotate(
    x: number,
    ld: number,
    positions: number,
    cosines: number,
    sines: number,
    rows: number,
    heads: number,
    headDim: number,
    rotary: number,
    direction: number,
  ): void;
  storeKeyValue(
    k: number,
    v: number,
    ld: number,
    rows: number,
    kvHeads: number,
    headDim: number,
    pages: number,
    slots: number,
  ): void;
  attend(
    q: number,
    ldq: number,
    out: number,
    ldo: number,
    rows: number,
    heads: number,
    kvHeads: number,
    headDim: number,
    scale: number,
    pages: number,
    tables: number,
    counts: number,
    scores: number,
    statistics: number,
  ): void;
  attendBackward(
    qkv: number,
    dQkv: number,
    ld: number,
    out: number,
    dOut: number,
    ldo: number,
    length: number,
    heads: number,
    kvHeads: number,
    headDim: number,
    scale: number,
    pages: number,
    table: number,
    statistics: number,
    scratch: number,
  ): void;
  swiGlu(gateUp: number, act: number, rows: number, n: number): void;
  swiGluBackward(gateUp: number, dAct: number, rows: number, n: number): void;
  tokenStatistics(
    logits: number,
    ld: number,
    vocab: number,
    rows: number,
    targets: number,
    inverseTemperature: number,
    logp: number,
    entropy: number,
    lse: number,
  ): void;
  logitsBackward(
    logits: number,
    ld: number,
    rows: number,
    targets: number,
    inverseTemperature: number,
    dLogp: number,
    dEntropy: number,
    entropy: number,
    lse: number,
  ): void;
  sampleRow(logits: number, ld: number, vocab: number, lse: number, u: number): number;
  argmaxRow(logits: number, vocab: number): number;
  sumSquares(x: number, n: number): number;
  adamW(
    p: number,
    g: number,
    m: number,
    v: number,
    n: number,
    clip: number,
    keep: number,
    beta1: number,
    oneMinusBeta1: number,
    beta2: number,
    oneMinusBeta2: number,
    rate: number,
    rootCorrection: number,
    eps: number,
  ): void;
}

/** The same place seen from src/ and from dist/. */
const ENGINE = new URL("../../dist/engine.wasm", import.meta.url);

let compiled: WebAssembly.Module | undefined;

/** @throws MortiseError when the engine has not been built. */
export function instantiateKernels(memory: WebAssembly.Memory): Kernels {
  try {
    compiled ??= new WebAssembly.Module(readFileSync(ENGINE));
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_POLICY_UNSUPPORTED",
      message: `the embedded engine cannot be loaded from ${ENGINE.pathname}.`,
      fix: "Build it with `pnpm --filter @mortise/policy run build:wasm`.",
      cause,
    });
  }
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports as unknown as Kernels;
}
