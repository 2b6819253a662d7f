/**
 * The kernels of the embedded engine, compiled to dist/engine.wasm. Every pointer is a byte address in the one
 * imported memory; every matrix is row-major float32 with a leading dimension (`ld`) counted in floats.
 * Nothing here allocates, and nothing knows what a model is.
 *
 * Two rules hold in every kernel:
 *   R1  The sums behind one output row run in an order that depends on that row alone, so a row's result does
 *       not change with the batch it is computed in.
 *   R2  No relaxed SIMD and no fused multiply-add: the same bytes come out on every processor.
 */

export { swiGlu, swiGluBackward } from "./activation";
export { attend, storeKeyValue } from "./attention";
export { attendBackward } from "./attention-backward";
export { gemm, packColumns, packRows, transpose } from "./gemm";
export { rmsNorm, rmsNormBackward } from "./norm";
export { adamW, sumSquares } from "./optimizer";
export { rotate } from "./rope";
export { addBias, addColumnSums, embed, embedBackward } from "./rows";
export { argmaxRow, sampleRow } from "./sampling";
export { logitsBackward, tokenStatistics } from "./vocabulary";
