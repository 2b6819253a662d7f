/** Owns `mortise quickstart`: its options, and what is printed at the end. The run itself is quickstart/. */
import { randomBytes } from "node:crypto";
import { type Command, InvalidArgumentError, Option } from "commander";
import { EXIT_FAILURE, note, type OutputOptions, printResult } from "../output.js";
import type { Overhead } from "../quickstart/cpu-meter.js";
import { optionsOfRun, type QuickstartResult, quickstart } from "../quickstart/quickstart.js";
import { DEFAULT_EVAL_ATTEMPTS, DEFAULT_STEPS, type QuickstartOptions } from "../quickstart/recipe.js";
import type { Summary } from "../quickstart/summary.js";
import { LineView, TerminalView } from "../quickstart/view.js";
import { Interrupted } from "../site/interrupts.js";

/** Stages below this share of a trial are not worth a line. */
const SMALLEST_SHOWN_MS = 0.5;

interface Flags {
  readonly resume?: string;
  readonly seed: number;
  readonly steps: number;
  readonly evalAttempts: number;
  readonly control: boolean;
  readonly set: readonly string[];
}

export function addQuickstart(program: Command, output: () => OutputOptions): void {
  program
    .command("quickstart")
    .description("train a small policy to repair code, through every service, on this machine")
    .option("--seed <n>", "seed of tasks, initial weights and sampling", wholeNumber(0), 1)
    .option("--steps <n>", "optimiser steps of reinforcement learning", wholeNumber(0), DEFAULT_STEPS)
    .option(
      "--eval-attempts <n>",
      "held-out attempts of each evaluation",
      wholeNumber(0),
      DEFAULT_EVAL_ATTEMPTS,
    )
    .option("--control", "also spend the training time on more supervised fine-tuning, and compare", false)
    .option(
      "--set <key=value>",
      "depart from the recipe, by a key of the run file; may be repeated",
      (set: string, sets: readonly string[]) => [...sets, set],
      [],
    )
    .addOption(
      new Option("--resume <runId>", "continue a run that was interrupted").conflicts([
        "seed",
        "steps",
        "evalAttempts",
        "control",
        "set",
      ]),
    )
    .action(async (flags: Flags) => {
      const options = flags.resume === undefined ? newRun(flags) : await optionsOfRun(flags.resume);
      process.exitCode = await runQuickstart(options, output());
    });
}

async function runQuickstart(options: QuickstartOptions, output: OutputOptions): Promise<number> {
  const view = process.stderr.isTTY ? new TerminalView() : new LineView(note);
  view.note(`run ${options.runId}`);
  try {
    const result = await quickstart(options, view);
    printResult(output, result.summary, () => describeResult(result));
    for (const reason of result.failed) note(`gate failed: ${reason}`);
    return result.failed.length === 0 ? 0 : EXIT_FAILURE;
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    const resume = `npm run quickstart -- --resume ${options.runId}`;
    printResult(output, { runId: options.runId, interrupted: error.signal, resume }, () => [
      `${error.message}; everything is stopped. Continue with: ${resume}`,
    ]);
    return error.exitCode;
  }
}

function newRun({ seed, steps, evalAttempts, control, set }: Flags): QuickstartOptions {
  const stamp = new Date().toISOString().replaceAll(/[-:]/g, "").slice(0, 15);
  return {
    runId: `q${stamp}-${randomBytes(2).toString("hex")}`,
    seed,
    steps,
    evalAttempts,
    control,
    sets: set,
  };
}

function describeResult({ summary, overhead }: QuickstartResult): string[] {
  return [
    `run ${summary.runId}: ${summary.steps} steps, ${summary.trials} trials, ${(summary.durationMs / 60_000).toFixed(1)} minutes`,
    ...describeRates(summary),
    ...describeTokens(summary),
    ...describeOverhead(overhead),
  ];
}

function describeRates({ solveRate, staleness, consistency }: Summary): string[] {
  const { before, after, control, riseCi95 } = solveRate;
  const interval =
    riseCi95 === null ? "" : `, rise [${riseCi95.map((bound) => bound.toFixed(3)).join(", ")}] at 95 %`;
  return [
    `solve rate: ${shown(before)} before, ${shown(after)} after${interval}${control === undefined ? "" : `; control ${shown(control)}`}`,
    `staleness: at most ${shown(staleness.max, 0)} (bound ${staleness.bound})`,
    `consistency: pearson ${shown(consistency.pearson, 6)}, max |Δ log-probability| ${consistency.maxAbsDeltaLogp?.toExponential(1) ?? "undefined"}`,
  ];
}

function describeTokens({ tokens, services }: Summary): string[] {
  const parts = Object.entries(tokens).map(([name, count]) => `${name} ${count}`);
  const restarted = services
    .filter(({ restarts }) => restarts > 0)
    .map(({ name, restarts }) => `${name} ${restarts}`);
  return [
    `tokens: ${parts.join(", ")}`,
    ...(restarted.length === 0 ? [] : [`restarts: ${restarted.join(", ")}`]),
  ];
}

function describeOverhead(overhead: Overhead | undefined): string[] {
  if (overhead === undefined) return [];
  const parts = overhead.parts.filter(([, ms]) => ms >= SMALLEST_SHOWN_MS);
  const total = `trial overhead: ${overhead.perTrialMs.toFixed(0)} ms of CPU, of it by stage or process:`;
  return [total, ...parts.map(([name, ms]) => `  ${name}: ${ms.toFixed(1)} ms`)];
}

function shown(value: number | null, digits = 3): string {
  return value === null ? "undefined" : value.toFixed(digits);
}

/** A parser of option values. */
export function wholeNumber(minimum: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isSafeInteger(value) && value >= minimum && text.trim() !== "") return value;
    throw new InvalidArgumentError(`A whole number of at least ${minimum} is needed.`);
  };
}
