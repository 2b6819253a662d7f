/**
 * Owns the files of an evaluation: its result, a row for every trial, a row for every task, an index of all tasks with
 * their solve rates, and one of those that were selected. Each appears whole.
 */
import { existsSync, statSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { RunConfig } from "@mortise/contracts";
import { isCounted } from "@mortise/evaluation";
import { loadIndexedTask, type TaskIndexEntry } from "@mortise/tasks";
import {
  type FunnelStep,
  type IndexedTask,
  placedBelow,
  type Range,
  select,
  unionOf,
  within,
  withSolveRates,
  writeIndex,
} from "@mortise/tasks/selection";
import type { RunHistory } from "../report/run-history.js";
import { trialFacts } from "../report/trial-facts.js";
import type { EvaluationResult } from "./result.js";
import type { EvaluationWish } from "./wish.js";

export interface Written {
  readonly directory: string;
  readonly files: readonly string[];
  /** What the selection dropped; absent where nothing was selected. */
  readonly funnel?: readonly FunnelStep[];
  readonly selected?: number;
}

export interface FilesWish {
  readonly wish: EvaluationWish;
  readonly run: RunConfig;
  readonly history: RunHistory;
  readonly result: EvaluationResult;
  readonly entries: readonly TaskIndexEntry[];
  /** The site's directory of tasks. */
  readonly tasksDirectory: string;
}

export async function writeResult(given: FilesWish): Promise<Written> {
  const { wish, result } = given;
  const directory = wish.out;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const at = (name: string) => join(directory, name);
  await put(at("result.json"), `${JSON.stringify({ schema: 1, ...result }, null, 2)}\n`);
  await put(at("attempts.jsonl"), lines(attemptRows(given)));
  await put(at("difficulty.jsonl"), lines(difficultyRows(given)));
  const all = withSolveRates(
    await indexedTasks(given),
    new Map(result.perTask.map(({ task, solveRate }) => [task.toLowerCase(), solveRate])),
  );
  const files = [
    at("result.json"),
    at("attempts.jsonl"),
    at("difficulty.jsonl"),
    ...writeIndex(at("index"), placedBelow(at("index"), all), "train"),
  ];
  if (wish.select === undefined) return { directory, files };
  const { tasks, funnel } = select(all, [
    within("solve rate", bounds(wish.select), ({ solveRate }) => solveRate),
  ]);
  const selected =
    tasks.length === 0 ? [] : writeIndex(at("selected"), placedBelow(at("selected"), tasks), "train");
  return { directory, files: [...files, ...selected], funnel, selected: tasks.length };
}

function bounds({ min, max }: NonNullable<EvaluationWish["select"]>): Range {
  return { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
}

/** One row a trial that has ended, retries and lost ones too. */
function attemptRows({ history, run, wish }: FilesWish): object[] {
  const closed = new Map(history.closed.map((transition) => [transition.trial, transition]));
  return trialFacts(history).map((fact) => {
    const transition = closed.get(fact.trial)!;
    const verdict = history.verdicts.get(fact.trial);
    const sandbox = history.sandboxes.get(fact.trial)?.fact;
    const ended = sandbox?.case === "ended" ? sandbox.value : undefined;
    return {
      run: run.run.id,
      task: fact.task,
      digest: transition.task?.digest ?? null,
      attempt: fact.slot % wish.protocol.attempts,
      trial: fact.trial,
      retry: fact.retry,
      retry_of: transition.retryOf || null,
      counted: isCounted(fact),
      resolved: isCounted(fact) ? fact.verdict === "resolved" : null,
      verdict: fact.verdict ?? null,
      // Of a trial that does not count there is no reward, not one of 0.
      reward: isCounted(fact) ? (transition.reward ?? null) : null,
      termination: fact.termination,
      reason: transition.reason || null,
      sampled_tokens: fact.sampledTokens ?? null,
      turns: fact.turns ?? null,
      stages_ms: Object.fromEntries(fact.stages.map(({ stage, wallMs }) => [stage, Math.round(wallMs)])),
      harness: run.rollout.harness,
      harness_version: ended?.harnessVersion ?? null,
      grader: verdict?.grader ?? null,
      patch_sha256: transition.patch?.sha256 ?? null,
      shown_tests_changed: ended?.shownTestsChanged ?? null,
    };
  });
}

/** One row an attempted task; `mortise tasks index --solve-rates` reads those that have a rate. */
function difficultyRows({ result, entries }: FilesWish): object[] {
  const known = new Map(result.perTask.map((one) => [one.task, one]));
  return entries.flatMap(({ id, digest }) => {
    const one = known.get(id);
    if (one === undefined) return [];
    const { attempts, resolved, solveRate, interval, band } = one;
    return [{ task: id, digest, attempts, resolved, solve_rate: solveRate, interval, band }];
  });
}

/** Rows as the index they came from has them, else made of the tasks themselves; paths absolute. */
async function indexedTasks({ wish, entries, tasksDirectory }: FilesWish): Promise<IndexedTask[]> {
  const rows = new Map<string, IndexedTask>();
  const source = wish.tasks ?? tasksDirectory;
  if (hasRows(source)) for (const task of (await unionOf([{ path: source }])).tasks) rows.set(task.id, task);
  return entries.map(({ id, digest, split }) => {
    const known = rows.get(id);
    if (known !== undefined) return { ...known, digest, split };
    const { instruction } = loadIndexedTask(tasksDirectory, { id, digest });
    return {
      id,
      instance: id,
      prompt: [{ role: "user", content: instruction }],
      digest,
      split,
      path: resolve(tasksDirectory, id),
      other: { row: {}, rewardModel: {}, extraInfo: {} },
    };
  });
}

/** A thin index: index.json alone names tasks and no more. */
function hasRows(source: string): boolean {
  if (!statSync(source).isDirectory()) return !source.endsWith("index.json");
  return ["index.jsonl", "index.parquet"].some((name) => existsSync(join(source, name)));
}

function lines(rows: readonly object[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}

async function put(path: string, text: string): Promise<void> {
  await writeFile(`${path}.partial`, text, { mode: 0o600 });
  await rename(`${path}.partial`, path);
}
