/** Checks of the optimiser entries. */
import { adamwState, adamwUpdate, clipGlobalNorm, warmupConstant } from "../../src/index.js";
import { type Check, expectClose } from "./vector.js";

export const optimiserChecks: Record<string, Check> = {
  adamw: ({ inputs, expected, abs_tol }) => {
    const parameters = Float64Array.of(inputs.p0);
    let state = adamwState(1);
    const trace = inputs.grads.map((gradient: number) => {
      state = adamwUpdate(parameters, [gradient], state, {
        learningRate: inputs.lr,
        betas: inputs.betas,
        epsilon: inputs.eps,
        weightDecay: inputs.weight_decay,
      });
      return parameters[0];
    });
    expectClose(trace, expected.p, abs_tol);
    expectClose(state.m[0], expected.m, abs_tol);
    expectClose(state.v[0], expected.v, abs_tol);
  },
  clip_global_norm: ({ inputs, expected, abs_tol }) => {
    const { norm, scale } = clipGlobalNorm(
      [inputs.grads.slice(0, 1), inputs.grads.slice(1)],
      inputs.max_norm,
    );
    expectClose(norm, expected.norm, abs_tol);
    expectClose(
      inputs.grads.map((gradient: number) => gradient * scale!),
      expected.clipped,
      abs_tol,
    );
  },
  lr_warmup_constant: ({ inputs, expected, abs_tol }) => {
    for (const [field, countFrom] of [
      ["from_1", 1],
      ["from_0", 0],
    ] as const) {
      const rates = expected[field].map((_: number, i: number) =>
        warmupConstant(i + 1, { peak: inputs.lr, warmup: inputs.warmup, countFrom }),
      );
      expectClose(rates, expected[field], abs_tol);
    }
  },
};
