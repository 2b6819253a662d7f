/**
 * Owns the second opinion on recorded log-probabilities: an implementation of the policy that shares no kernel
 * with the one that samples and trains, loaded once when first wanted, and the rows of each step it scores.
 * Does not own the comparison (rescore.ts).
 *
 * The engine samples with the kernels that train, so those reproduce it bit for bit whatever they compute; an
 * error common to both shows only here.
 */
import { seededRandom } from "@mortise/objectives";
import { createIndependentModel, type PolicyModel } from "@mortise/policy";
import type { StepTask } from "./messages.js";

/** parameters · tokens of one step: about 1 CPU-second in JavaScript. */
const MAX_PARAMETER_TOKENS = 6e7;

export interface IndependentScorer {
  readonly model: PolicyModel;
  /** Indices into the task's rows. */
  readonly rows: readonly number[];
}

export class IndependentCheck {
  readonly #trained: PolicyModel;
  readonly #onAbsent: (reason: string) => void;
  #loading: Promise<PolicyModel | undefined> | undefined;
  #isToldAbsent = false;

  /** @param onAbsent told the first reason for an absence, and no other */
  constructor(trained: PolicyModel, onAbsent: (reason: string) => void) {
    this.#trained = trained;
    this.#onAbsent = onAbsent;
  }

  /** undefined when nothing is to be scored, or nothing can score it: absent is absent (C10). */
  async of(task: StepTask): Promise<IndependentScorer | undefined> {
    if (task.independentTrials === 0 || task.rows.length === 0) return undefined;
    const rows = independentRows(task, this.#trained.parameterCount);
    if (rows.length === 0) {
      this.#absent(`one trial of a policy with ${this.#trained.parameterCount} parameters costs too much`);
      return undefined;
    }
    this.#loading ??= createIndependentModel(this.#trained).catch((error: unknown) => {
      this.#absent(error instanceof Error ? error.message : String(error));
      return undefined;
    });
    const model = await this.#loading;
    return model && { model, rows };
  }

  #absent(reason: string): void {
    if (this.#isToldAbsent) return;
    this.#isToldAbsent = true;
    this.#onAbsent(reason);
  }
}

/**
 * Rows of at most `task.independentTrials` whole trials, drawn by the step's seed; a trial that would exceed
 * the cost of a step is passed over. A row costs its tokens once for each version that sampled in it.
 */
export function independentRows(task: StepTask, parameters: number): number[] {
  const random = seededRandom(task.seed);
  const drawn = [...Map.groupBy(task.rows.keys(), (i) => task.rows[i]!.trial).values()]
    .map((rows) => ({ rows, at: random() }))
    .sort((a, b) => a.at - b.at);
  const chosen: number[] = [];
  let left = MAX_PARAMETER_TOKENS / parameters;
  let nTrials = 0;
  for (const { rows } of drawn) {
    if (nTrials === task.independentTrials) break;
    const tokens = rows.reduce((sum, i) => sum + scoredTokens(task.rows[i]!), 0);
    if (tokens > left) continue;
    left -= tokens;
    nTrials += 1;
    chosen.push(...rows);
  }
  return chosen.sort((a, b) => a - b);
}

function scoredTokens({ ids, mask, versions }: StepTask["rows"][number]): number {
  return ids.length * new Set(versions.filter((_, t) => mask[t] === 1)).size;
}
