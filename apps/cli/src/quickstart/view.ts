/**
 * Owns how a run looks while it runs: a block that is redrawn on a terminal, plain lines elsewhere. Everything
 * goes to standard error. Does not gather anything (progress.ts).
 */
import { RunPhase } from "@mortise/contracts";
import type { ProcessStatus } from "../supervisor/supervisor.js";
import { elapsed, TerminalBlock } from "../terminal-block.js";
import type { Progress } from "./progress.js";

const PHASES: Readonly<Record<RunPhase, string>> = {
  [RunPhase.UNSPECIFIED]: "starting",
  [RunPhase.WARM_START]: "warm start: supervised fine-tuning on demonstrations",
  [RunPhase.EVALUATE_BEFORE]: "evaluating before training",
  [RunPhase.TRAIN]: "training",
  [RunPhase.EVALUATE_AFTER]: "evaluating after training",
  [RunPhase.FINISHED]: "finished",
};

export interface ViewFacts {
  readonly runId: string;
  readonly steps: number;
  readonly elapsedMs: number;
  readonly progress: Progress;
  readonly processes: readonly ProcessStatus[];
  readonly stalenessBound: number;
}

export interface View {
  /** Something worth a line of its own, above the block. */
  note(line: string): void;
  update(facts: ViewFacts): void;
  /** Leaves what is shown and stops drawing. */
  end(): void;
}

/** The block, one line an element. Pure, so that both views and tests read the same. */
export function describe(facts: ViewFacts): string[] {
  const { progress, processes } = facts;
  return [
    `mortise  run ${facts.runId}  ${elapsed(facts.elapsedMs)}`,
    `services     ${processes.map(describeProcess).join("  ")}`,
    `phase        ${describePhase(facts)}`,
    ...describeForming(progress),
    ...describeLastStep(facts),
    ...progress.evaluations.map(
      ({ name, solved, attempts, invalid }) =>
        `solve rate   ${name}: ${ratio(solved, attempts)} ${counted(solved, attempts, invalid)}`,
    ),
  ];
}

export function describeProcess({ name, phase, restarts }: ProcessStatus): string {
  const state = phase === "running" ? "" : ` ${phase}`;
  return `${name}${state}${restarts > 0 ? ` (${restarts} restarts)` : ""}`;
}

function describePhase({ progress, steps }: ViewFacts): string {
  const { run, trainer, phase } = progress;
  const name = PHASES[phase];
  if (phase === RunPhase.WARM_START || phase === RunPhase.UNSPECIFIED) {
    if (trainer === undefined || trainer.warmStartSteps === 0) return name;
    const loss = trainer.loss === undefined ? "" : `, loss ${trainer.loss.toFixed(3)}`;
    return `${name}, step ${trainer.warmStartStep}/${trainer.warmStartSteps}${loss}`;
  }
  if (run === undefined) return name;
  if (phase === RunPhase.TRAIN) return `${name}, step ${run.stepForming} of ${steps}`;
  return run.evaluationTotal > 0 ? `${name}, ${run.evaluationDone}/${run.evaluationTotal} attempts` : name;
}

function describeForming({ run, phase }: Progress): string[] {
  if (run === undefined || phase === RunPhase.FINISHED) return [];
  const { queued, warm, running, verifying } = run;
  const stages = `${queued} queued, ${warm} warm, ${running} running, ${verifying} verifying`;
  if (phase !== RunPhase.TRAIN) return [`trials       ${stages}`];
  const failures = run.setupFailures > 0 ? `, ${run.setupFailures} setup failures` : "";
  return [`forming      ${run.trialsClosed}/${run.trialsNeeded} trials${failures}  (${stages})`];
}

function describeLastStep({ progress, stalenessBound }: ViewFacts): string[] {
  const step = progress.lastStep;
  if (step === undefined) return [];
  const { consistency, staleness } = step;
  const max = consistency?.maxAbsDelta?.toExponential(1) ?? "undefined";
  const pearson = consistency?.pearsonProbability?.toFixed(6) ?? "undefined";
  return [
    `step ${String(step.step).padEnd(8)}reward ${step.meanReward?.toFixed(3) ?? "undefined"}  loss ${step.loss.toFixed(4)}  gradient norm ${step.gradientNorm.toFixed(3)}`,
    `staleness    max ${staleness?.max ?? "undefined"}, mean ${staleness?.mean.toFixed(2) ?? "undefined"} (bound ${stalenessBound})`,
    `consistency  pearson ${pearson}, max |Δ log-probability| ${max}`,
  ];
}

/** Redraws the block in place. */
export class TerminalView implements View {
  readonly #block: TerminalBlock;

  constructor(out?: NodeJS.WriteStream) {
    this.#block = new TerminalBlock(out);
  }

  note(line: string): void {
    this.#block.note(line);
  }

  update(facts: ViewFacts): void {
    this.#block.show(describe(facts));
  }

  end(): void {
    this.#block.end();
  }
}

/** Prints a line when something has happened: a phase, a step, an evaluation. */
export class LineView implements View {
  readonly #print: (line: string) => void;
  #said = new Set<string>();

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  note(line: string): void {
    this.#print(line);
  }

  update(facts: ViewFacts): void {
    const { progress } = facts;
    const at = elapsed(facts.elapsedMs);
    this.#once(`phase ${progress.phase}`, `${at}  ${PHASES[progress.phase]}`);
    for (const { name, solved, attempts, invalid } of progress.evaluations) {
      this.#once(
        `evaluation ${name}`,
        `${at}  solve rate ${name} ${ratio(solved, attempts)} ${counted(solved, attempts, invalid)}`,
      );
    }
    const step = progress.lastStep;
    if (step !== undefined) {
      const [numbers, staleness, consistency] = describeLastStep(facts);
      this.#once(`step ${step.step}`, `${at}  ${[numbers, staleness, consistency].map(compact).join("  ")}`);
    }
  }

  end(): void {}

  #once(key: string, line: string): void {
    if (this.#said.has(key)) return;
    this.#said.add(key);
    this.#print(line);
  }
}

const compact = (line: string | undefined): string => (line ?? "").replaceAll(/ {2,}/g, " ");

function counted(solved: number, attempts: number, invalid: number): string {
  return `(${solved}/${attempts}${invalid > 0 ? `, ${invalid} without a verdict` : ""})`;
}

function ratio(part: number, whole: number): string {
  return whole === 0 ? "undefined" : (part / whole).toFixed(3);
}
