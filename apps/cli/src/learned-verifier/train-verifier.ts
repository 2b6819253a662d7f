/**
 * Owns making a learned verifier from attempts: what it is shown of them, its training, its directory. Reads no records.
 */
import { MortiseError } from "@mortise/contracts";
import { type Checkpoint, createPolicyModel } from "@mortise/policy";
import { balancedExamples, examplesDigest, type JudgedAttempt, splitTasks } from "./examples.js";
import { Judge, type Lesson, type Progress } from "./judge.js";
import type { ReadAttempts } from "./judged-attempts.js";
import { PromptEncoder } from "./prompt-encoder.js";
import { type Manifest, writeVerifier } from "./verifier-directory.js";

export interface TrainingWish extends Lesson {
  /** Resolved attempts of one task, and as many unresolved. */
  readonly atMost: number;
  readonly heldOutShare: number;
  /** Tasks it finds alike in are on the same side; each task by itself when absent. */
  readonly family?: RegExp | undefined;
  readonly maxTokens: number;
}

export interface TrainedVerifier {
  readonly judge: Judge;
  readonly encoder: PromptEncoder;
  readonly manifest: Manifest;
  readonly heldOut: readonly JudgedAttempt[];
}

/** @throws MortiseError MORTISE_OPERATOR_USAGE when there is nothing to learn from, or nothing to measure on */
export async function trainVerifier(
  out: string,
  base: Checkpoint,
  { attempts, leftOut, invalid }: ReadAttempts,
  wish: TrainingWish,
  onProgress: (progress: Progress) => void,
): Promise<TrainedVerifier> {
  const encoder = new PromptEncoder(base, wish.maxTokens);
  const split = splitTasks(
    attempts.map(({ task }) => task),
    wish.heldOutShare,
    wish.seed,
    wish.family,
  );
  const shown = attempts
    .filter(({ task }) => split.trained.has(task))
    .map((attempt) => ({ ...attempt, prompt: encoder.encode(attempt.log) }));
  const fitting = shown.flatMap(({ prompt, ...attempt }) => (prompt ? [{ ...attempt, prompt }] : []));
  const examples = balancedExamples(fitting, wish.atMost, wish.seed);
  if (examples.length === 0) throw nothingToLearn(fitting.length);
  const model = await createPolicyModel(base.config, { backend: "embedded" });
  model.loadWeights(base.weights);
  const judge = new Judge(model, encoder);
  const { steps, loss } = judge.learn(examples, wish, onProgress);
  const { epochs, batchSize, learningRate, seed } = wish;
  const manifest = await writeVerifier(out, base, model.exportWeights(), {
    maxTokens: wish.maxTokens,
    data: {
      sha256: examplesDigest(examples),
      examples: examples.length,
      resolved: examples.filter(({ isResolved }) => isResolved).length,
      unresolved: examples.filter(({ isResolved }) => !isResolved).length,
      shortened: examples.filter(({ prompt }) => prompt.leftOut > 0).length,
      leftOut: leftOut.length + shown.length - fitting.length,
      invalid,
      atMost: wish.atMost,
      heldOutShare: wish.heldOutShare,
      family: wish.family?.source ?? null,
      sources: sourcesOf(examples),
    },
    training: { epochs, batchSize, learningRate, seed, steps, loss },
    trainedTasks: [...new Set(examples.map(({ task }) => task))].sort(),
    heldOutTasks: [...split.heldOut].sort(),
  });
  return { judge, encoder, manifest, heldOut: attempts.filter(({ task }) => split.heldOut.has(task)) };
}

function sourcesOf(examples: readonly JudgedAttempt[]): Manifest["data"]["sources"] {
  const counts = new Map<string, { run: string; set: string; examples: number }>();
  for (const { run, set } of examples) {
    const key = JSON.stringify([run, set]);
    const known = counts.get(key) ?? { run, set, examples: 0 };
    known.examples += 1;
    counts.set(key, known);
  }
  return [...counts.values()];
}

function nothingToLearn(attempts: number): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: `Of ${attempts} attempts that could be trained on, no task has a resolved and an unresolved one.`,
    fix: "Name runs with several attempts a task, or more sets with --set.",
    detail: { field: "runId" },
  });
}
