/**
 * Owns `mortise learned-verifier`: training a policy to say whether a trial resolved its task, from the attempts of runs,
 * and scoring attempts with it. Reads runs; writes a directory or a file. Its scores choose among attempts; they are no
 * reward.
 */
import { resolve } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { createPolicyModel, openCheckpoint } from "@mortise/policy";
import { type Command, InvalidArgumentError, Option } from "commander";
import { refuseExisting, writeFileWhole } from "../export/write-export.js";
import { seenTasks } from "../learned-verifier/examples.js";
import { Judge } from "../learned-verifier/judge.js";
import { judgedAttempts, type ReadAttempts } from "../learned-verifier/judged-attempts.js";
import { scoringLines, trainedLines } from "../learned-verifier/lines.js";
import { PromptEncoder } from "../learned-verifier/prompt-encoder.js";
import { type ScoreRow, scoreAttempts, setScorings } from "../learned-verifier/scored-attempts.js";
import { trainVerifier } from "../learned-verifier/train-verifier.js";
import { openVerifier } from "../learned-verifier/verifier-directory.js";
import { note, type OutputOptions, printResult } from "../output.js";
import { collected, count, positive } from "../tasks/arguments.js";

interface SourceFlags {
  readonly set: readonly string[];
  readonly site?: string;
  readonly archive?: string;
  readonly tokenizer?: string;
}

interface TrainFlags extends SourceFlags {
  readonly checkpoint: string;
  readonly out: string;
  readonly scores?: string;
  readonly atMost: number;
  readonly heldOut: number;
  readonly family?: RegExp;
  readonly maxTokens?: number;
  readonly epochs: number;
  readonly batchSize: number;
  readonly learningRate: number;
  readonly seed: number;
}

interface ScoreFlags extends SourceFlags {
  readonly verifier: string;
  readonly scores?: string;
}

export function addLearnedVerifier(program: Command, output: () => OutputOptions): void {
  const verifier = program
    .command("learned-verifier")
    .description("a policy that gives the probability that an attempt resolved its task");
  withSource(verifier.command("train <runIds...>"))
    .description("train one on attempts of runs, and measure it on tasks it was not trained on")
    .requiredOption("--checkpoint <directory>", "what it starts from: a policy, warm-started as a rule")
    .requiredOption("--out <directory>", "where it is written")
    .option("--scores <file>", "write the scores of the held-out attempts, JSON lines")
    .option("--at-most <count>", "resolved attempts of one task, and as many unresolved", atLeastOne, 4)
    .option("--held-out <share>", "share of the tasks it is measured on", share, 0.25)
    .option(
      "--family <pattern>",
      "regular expression: tasks in whose names it finds the same (its first group) are on the same side",
      pattern,
    )
    .option("--max-tokens <count>", "of prompt and answer; the policy's context when absent", atLeastOne)
    .option("--epochs <count>", "passes over the examples", atLeastOne, 16)
    .option("--batch-size <count>", "examples of one step", atLeastOne, 16)
    .option("--learning-rate <rate>", "peak of the schedule", positive, 1e-3)
    .option("--seed <n>", "of the choice of tasks and examples and their order", count, 1)
    .action((runIds: readonly string[], flags: TrainFlags) => train(runIds, flags, output()));
  withSource(verifier.command("score <runIds...>"))
    .description("score attempts at tasks it was not trained on, and say what choosing by the score is worth")
    .requiredOption("--verifier <directory>", "what `train` wrote")
    .option("--scores <file>", "write the scores, JSON lines")
    .action((runIds: readonly string[], flags: ScoreFlags) => score(runIds, flags, output()));
}

function withSource(command: Command): Command {
  return command
    .option(
      "--set <name>",
      "of this set only: training, or the name of an evaluation; may be repeated",
      collected,
      [],
    )
    .addOption(new Option("--site <file>", "site file of runs that are not quick starts").env("MORTISE_SITE"))
    .option("--archive <directory>", "read the runs from this archive instead of the streams")
    .option(
      "--tokenizer <directory>",
      "tokenizer and template the captured ids are read with; each run's own when absent",
    );
}

async function train(runIds: readonly string[], flags: TrainFlags, output: OutputOptions): Promise<void> {
  const out = resolve(flags.out);
  for (const place of [out, ...scoresPlace(flags)]) refuseExisting(place);
  const base = await openCheckpoint(flags.checkpoint);
  const read = await readAttempts(runIds, flags);
  const { maxPositions } = base.config;
  const trained = await trainVerifier(
    out,
    base,
    read,
    {
      ...flags,
      heldOutShare: flags.heldOut,
      maxTokens: Math.min(flags.maxTokens ?? maxPositions, maxPositions),
    },
    ({ step, steps, loss }) => note(`step ${step} of ${steps}: loss ${loss.toFixed(3)}`),
  );
  const { manifest } = trained;
  const { rows, tooLong } = scoreAttempts(trained.heldOut, trained.judge, trained.encoder);
  await writeScores(flags, rows);
  const sets = setScorings(rows);
  const leftOut = toldLeftOut(read, tooLong);
  printResult(output, { verifier: out, manifest, leftOut, sets }, () => [
    ...trainedLines(out, manifest),
    ...sets.flatMap(scoringLines),
  ]);
}

async function score(runIds: readonly string[], flags: ScoreFlags, output: OutputOptions): Promise<void> {
  for (const place of scoresPlace(flags)) refuseExisting(place);
  const { checkpoint, manifest } = await openVerifier(flags.verifier);
  const read = await readAttempts(runIds, flags);
  const { family } = manifest.data;
  const isSeen = seenTasks(manifest.trainedTasks, family === null ? undefined : new RegExp(family));
  const unseen = read.attempts.filter(({ task }) => !isSeen(task));
  if (unseen.length === 0) throw nothingToScore(read.attempts.length);
  const encoder = new PromptEncoder(checkpoint, manifest.maxTokens);
  const model = await createPolicyModel(checkpoint.config, { backend: "embedded" });
  model.loadWeights(checkpoint.weights);
  const { rows, tooLong } = scoreAttempts(unseen, new Judge(model, encoder), encoder);
  await writeScores(flags, rows);
  const sets = setScorings(rows);
  const trainedOn = read.attempts.length - unseen.length;
  const leftOut = toldLeftOut(read, tooLong);
  printResult(output, { verifier: resolve(flags.verifier), trainedOn, leftOut, sets }, () => [
    `${rows.length} attempts scored; ${trainedOn} are at tasks it was trained on, or at their kin, and were not`,
    ...sets.flatMap(scoringLines),
  ]);
}

function readAttempts(
  runIds: readonly string[],
  { set, site, archive, tokenizer }: SourceFlags,
): Promise<ReadAttempts> {
  return judgedAttempts(runIds, { sets: set, site, archive, tokenizer });
}

/** Every attempt with a valid verdict that has no score, with the reason. */
function toldLeftOut({ leftOut }: ReadAttempts, tooLong: readonly string[]): ReadAttempts["leftOut"] {
  const all = [...leftOut, ...tooLong.map((trial) => ({ trial, reason: "it is too long to be shown" }))];
  for (const { trial, reason } of all) note(`left out ${trial}: ${reason}`);
  return all;
}

function scoresPlace({ scores }: { readonly scores?: string }): string[] {
  return scores === undefined ? [] : [resolve(scores)];
}

async function writeScores(flags: { readonly scores?: string }, rows: readonly ScoreRow[]): Promise<void> {
  for (const place of scoresPlace(flags))
    await writeFileWhole(place, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
}

function nothingToScore(attempts: number): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: `Of ${attempts} attempts with a valid verdict none is at a task the verifier was not trained on.`,
    fix: "Name a run of other tasks.",
    detail: { field: "runId" },
  });
}

function atLeastOne(text: string): number {
  const value = count(text);
  if (value < 1) throw new InvalidArgumentError("It must be 1 or more.");
  return value;
}

function pattern(text: string): RegExp {
  try {
    return new RegExp(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

function share(text: string): number {
  const value = Number(text);
  if (value > 0 && value < 1) return value;
  throw new InvalidArgumentError("A number between 0 and 1 is needed.");
}
