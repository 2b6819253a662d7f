/** Checks of the evaluation entries. */
import {
  bestAtK,
  passAtK,
  passHatK,
  precisionRecall,
  wilsonInterval,
  yesProbability,
} from "../../src/index.js";
import { type Check, expectClose } from "./vector.js";

export const evaluationChecks: Record<string, Check> = {
  pass_at_k: ({ inputs, expected, abs_tol }) => {
    const cases: [number, number, number][] = inputs.cases;
    expectClose(
      cases.map(([n, c, k]) => passAtK(n, c, k)),
      expected.pass_at_k,
      abs_tol,
    );
    expectClose(
      cases.map(([n, c, k]) => passHatK(n, c, k)),
      expected.pass_hat_k,
      abs_tol,
    );
  },
  verifier: ({ inputs, expected, abs_tol }) => {
    const attempts = inputs.scores.map((score: number, i: number) => ({
      score,
      isResolved: inputs.resolved[i] === 1,
    }));
    expectClose(yesProbability(inputs.l_yes, inputs.l_no), expected.p_yes, abs_tol);
    for (const k of [1, 2, 3, 5]) expectClose(bestAtK(attempts, k), expected[`best_at_${k}`], abs_tol);
    const { precision, recall } = precisionRecall(attempts, 0.5);
    expectClose(precision, expected["precision_at_0.5"], abs_tol);
    expectClose(recall, expected["recall_at_0.5"], abs_tol);
  },
  wilson_ci: ({ inputs, expected, abs_tol }) => {
    expectClose(wilsonInterval(inputs.successes, inputs.n), expected.interval, abs_tol);
  },
};
