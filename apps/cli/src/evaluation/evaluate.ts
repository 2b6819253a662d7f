/**
 * Owns an evaluation as a sequence: check what was asked, have a site, run to the last verdict, read what was recorded,
 * write the result. The durable record is the run's streams: the same call goes on where an earlier one was killed.
 *
 * E1  What can be refused is refused before anything is started.
 * E2  However it ends, what has ended is written: an interrupt leaves a result that says it is not complete.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { filter, MortiseError, type RunConfig, WeightsRecordSchema } from "@mortise/contracts";
import { type Bus, sleep } from "@mortise/kernel";
import { openCheckpoint } from "@mortise/policy";
import { stringify } from "smol-toml";
import { EXIT_FAILURE } from "../output.js";
import { readAll } from "../records/run-records.js";
import { fromStreams } from "../report/run-history.js";
import { assertSandboxWishes } from "../sandbox-wishes.js";
import { chooseEngine } from "../site/init/engine.js";
import { listenForInterrupts } from "../site/interrupts.js";
import { takeOwnership } from "../site/owner-lock.js";
import { RunProcesses } from "../site/processes/run-processes.js";
import { underFlag } from "../site/refusal.js";
import { elapsed } from "../terminal-block.js";
import { type Attempts, AttemptWatch } from "./attempt-watch.js";
import { type AttemptedTasks, attemptedTasks, writeAttempted } from "./attempted-tasks.js";
import { type EvaluationSite, withEvaluationSite } from "./evaluation-site.js";
import { assertHarnessVersion } from "./harness-version.js";
import { type EvaluationResult, evaluationResult } from "./result.js";
import { type Written, writeResult } from "./result-files.js";
import { evaluationRun } from "./run-file.js";
import { assertSameWish, type EvaluationWish, evaluationPaths, storeWish } from "./wish.js";

const REFRESH_MS = 1_000;
/** Between two lines of progress. */
const TELL_EVERY_MS = 10_000;
/** After so long without a trial, where the reason is found is said once. */
const SILENCE_MS = 60_000;

export interface EvaluationEnd {
  readonly result: EvaluationResult;
  readonly written: Written;
  /** Why it ended before its last verdict: an interrupt, a service that was given up. */
  readonly stopped: unknown;
}

/** @throws MortiseError for what is wrong, by its flag */
export async function evaluate(wish: EvaluationWish, note: (line: string) => void): Promise<EvaluationEnd> {
  const paths = evaluationPaths(wish.runId);
  await assertSameWish(wish);
  const engine = await chooseEngine(wish.engine, wish.model);
  await assertCheckpoint(wish.checkpoint);
  await mkdir(paths.directory, { recursive: true, mode: 0o700 });
  const ownership = await takeOwnership(paths.owner, ({ pid, since }) => isRunning(wish.runId, pid, since));
  // Whoever is impatient leaves at once: a process whose supervisor is gone is ended by its guard.
  const interrupts = listenForInterrupts(() => process.exit(EXIT_FAILURE));
  try {
    return await withEvaluationSite(wish, { note, interrupts }, async (site) => {
      const tasks = await attemptedTasks(wish.tasks, wish.split, site.config.tasks.directory);
      const run = evaluationRun({
        ...wish,
        engine,
        harness: site.harness,
        index: paths.tasks,
        nTasks: tasks.entries.length,
      });
      assertSandboxWishes(site.config, run);
      assertHarnessVersion(site.config, run);
      await storeWish(wish);
      writeAttempted(paths.tasks, tasks);
      await writeFile(paths.run, stringify(run), { mode: 0o600 });
      return runToEnd({ wish, run, runFile: paths.run, tasks, site, note });
    });
  } finally {
    interrupts.dispose();
    await ownership.release();
  }
}

interface Evaluation {
  readonly wish: EvaluationWish;
  readonly run: RunConfig;
  readonly runFile: string;
  readonly tasks: AttemptedTasks;
  readonly site: EvaluationSite;
  readonly note: (line: string) => void;
}

async function runToEnd(evaluation: Evaluation): Promise<EvaluationEnd> {
  const { wish, run, runFile, tasks, site, note } = evaluation;
  const { bus, config, file } = site;
  const processes = new RunProcesses({ siteFile: file, site: config, runFile, note });
  const watch = await AttemptWatch.start(bus, run.run.id);
  let stopped: unknown;
  try {
    await processes.start(["scheduler"]);
    await follow(evaluation, watch, AbortSignal.any([site.stop, processes.fatal]));
  } catch (error) {
    stopped = error; // E2
  } finally {
    await watch.stop();
    await processes.stop();
  }
  const history = await fromStreams(bus, run.run.id, { captures: false });
  const result = evaluationResult({
    wish,
    run,
    history,
    tasks: { count: tasks.entries.length, digest: tasks.digest },
    weights: await acknowledgedWeights(bus, run.run.id),
  });
  const tasksDirectory = config.tasks.directory;
  const written = await writeResult({ wish, run, history, result, entries: tasks.entries, tasksDirectory });
  return { result, written, stopped };
}

async function follow(
  { run, site, note }: Evaluation,
  watch: AttemptWatch,
  stop: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  let toldAt = Number.NEGATIVE_INFINITY;
  let told = "";
  let isSilenceTold = false;
  const tell = (isLast: boolean) => {
    const line = progress(watch.attempts, run.evaluation.attempts);
    if (line === told || (!isLast && performance.now() - toldAt < TELL_EVERY_MS)) return;
    toldAt = performance.now();
    told = line;
    note(`${elapsed(performance.now() - startedAt)}  ${line}`);
  };
  while (!watch.isFinished) {
    tell(false);
    if (!isSilenceTold && watch.attempts.begun === 0 && performance.now() - startedAt > SILENCE_MS) {
      isSilenceTold = true;
      note(
        `no attempt has begun yet; ${join(site.config.state.directory, "logs", "scheduler.log")} says what it waits for`,
      );
    }
    await Promise.race([watch.finished, sleep(REFRESH_MS, undefined, stop)]);
  }
  tell(true);
}

function progress({ executed, resolved, without, retried }: Attempts, expected: number): string {
  const lost = without === 0 && retried === 0 ? "" : `, ${without} without a verdict, ${retried} tried again`;
  return `${executed} of ${expected} attempts, ${resolved} resolved${lost}`;
}

/** SHA-256 of the weights engines said they sample from. */
async function acknowledgedWeights(bus: Bus, run: string): Promise<string[]> {
  const found = new Set<string>();
  await readAll(bus, "WEIGHTS", filter.weights(run), WeightsRecordSchema, ({ record }) => {
    if (record.case === "receipt") found.add(record.value.sha256);
  });
  return [...found].sort();
}

async function assertCheckpoint(directory: string): Promise<void> {
  try {
    await openCheckpoint(directory);
  } catch (error) {
    throw underFlag("--checkpoint", error);
  }
}

function isRunning(run: string, pid: number, since: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_RUN_EXISTS",
    message: `${run} is being evaluated since ${since} (process ${pid}).`,
    fix: "Wait for it, or end it and resume it.",
    detail: { field: "--resume" },
  });
}
