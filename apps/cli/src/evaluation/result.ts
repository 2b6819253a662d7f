/**
 * Owns what an evaluation came to, from what its run recorded: how many attempts were expected and executed, what they
 * were worth, what was lost, and under what they really ran. Its keys are the JSON that scripts read. Pure.
 *
 * V1  A rate is over executed attempts, those with the verdict resolved or unresolved; what was lost is counted beside it
 *     and is in no rate.
 * V2  A result that is not what its protocol asked for says so in `problems`, one sentence each.
 * V3  An attempt that was cancelled because the evaluation was interrupted is open: it is made when that is resumed.
 */
import type { EvaluationProtocol, RunConfig } from "@mortise/contracts";
import {
  type Band,
  countByBand,
  countedBy,
  type Difficulty,
  difficultyOf,
  isCounted,
  type PlaceCounts,
  protocolDigest,
  type SetReport,
  type SolveSummary,
  setReport,
  type TrialFact,
} from "@mortise/evaluation";
import { conditionsOf } from "../report/conditions.js";
import type { RunHistory } from "../report/run-history.js";
import { trialFacts } from "../report/trial-facts.js";
import type { EvaluationWish } from "./wish.js";

export interface EvaluationResult {
  readonly command: EvaluationWish["command"];
  readonly run: string;
  readonly protocol: {
    readonly name: string;
    readonly digest: string;
    readonly settings: EvaluationProtocol;
  };
  readonly model: {
    readonly checkpoint: string;
    readonly engine: RunConfig["engine"]["kind"];
    readonly servers: readonly string[];
    /** SHA-256 (hex) of the weights engines acknowledged. */
    readonly weights: readonly string[];
  };
  readonly harness: { readonly name: string; readonly versions: readonly string[] };
  /** That judged what counts. */
  readonly graders: readonly string[];
  readonly tasks: { readonly count: number; readonly digest: string };
  /** V1, V3 */
  readonly attempts: PlaceCounts & {
    /** Trials in the place of one that was lost, or cancelled by an interrupt. */
    readonly retried: number;
  };
  /** Mean over tasks with its interval, all attempts with theirs, shapes, and what k attempts are worth. */
  readonly solving: SolveSummary;
  /** Of all trials that ended, lost ones and retries too. */
  readonly byTermination: SetReport["byTermination"];
  readonly byVerdict: SetReport["byVerdict"];
  readonly difficulty: Readonly<Record<Band, number>>;
  /** Of every attempted task that has a counted attempt. */
  readonly perTask: readonly Difficulty[];
  /** Whether every expected attempt was executed. */
  readonly isComplete: boolean;
  /** V2 */
  readonly problems: readonly string[];
}

export interface ResultFacts {
  readonly wish: EvaluationWish;
  readonly run: RunConfig;
  readonly history: RunHistory;
  readonly tasks: { readonly count: number; readonly digest: string };
  readonly weights: readonly string[];
}

export function evaluationResult({ wish, run, history, tasks, weights }: ResultFacts): EvaluationResult {
  const { protocol } = wish;
  const facts = trialFacts(history);
  const expected = run.evaluation.attempts;
  const plan = { places: expected, maxRetries: run.rollout.maxRetries };
  const report = setReport("evaluation", facts, { plan });
  const { executed } = report.places;
  const conditions = conditionsOf(history, facts);
  const graders = [...new Set([...conditions.tasks.values()].flatMap((task) => [...task.graders]))].sort();
  const perTask = difficulties(facts);
  const { engine } = run;
  return {
    command: wish.command,
    run: run.run.id,
    protocol: { name: protocol.name, digest: protocolDigest(protocol), settings: protocol },
    model: {
      checkpoint: wish.checkpoint,
      engine: engine.kind,
      servers: engine.kind === "vllm" ? engine.urls : [],
      weights,
    },
    harness: { name: run.rollout.harness, versions: conditions.harnessVersions },
    graders,
    tasks,
    attempts: { ...withoutCancelled(report.places), retried: facts.filter(({ retry }) => retry > 0).length },
    solving: report.solving,
    byTermination: report.byTermination,
    byVerdict: report.byVerdict,
    difficulty: countByBand(perTask),
    perTask,
    isComplete: executed === expected,
    problems: problemsOf(protocol, { expected, executed, graders, versions: conditions.harnessVersions }),
  };
}

/** V3 */
function withoutCancelled(places: PlaceCounts): PlaceCounts {
  const { cancelled = 0, ...lostBy } = places.lostBy;
  const open = places.open === null ? null : places.open + cancelled;
  return { ...places, lost: places.lost - cancelled, lostBy, open };
}

function difficulties(facts: readonly TrialFact[]): Difficulty[] {
  return [...countedBy(facts.filter(isCounted), "task")].map(([task, trials]) =>
    difficultyOf({ task, outcomes: trials.map(({ verdict }) => verdict === "resolved") }),
  );
}

interface Observed {
  readonly expected: number;
  readonly executed: number;
  readonly graders: readonly string[];
  readonly versions: readonly string[];
}

/** V2 */
function problemsOf(protocol: EvaluationProtocol, observed: Observed): string[] {
  const { expected, executed, graders, versions } = observed;
  const { version } = protocol.harness;
  const strange = graders.filter((grader) => !protocol.graders.includes(grader));
  return [
    ...(executed === expected
      ? []
      : [`${expected - executed} of ${expected} attempts have no verdict that counts`]),
    ...(version === undefined || versions.every((one) => one === version)
      ? []
      : [`the protocol says harness version ${version}; sandboxes ran ${versions.join(", ")}`]),
    ...(protocol.graders.length === 0 || strange.length === 0
      ? []
      : [`the protocol does not name these graders: ${strange.join(", ")}`]),
    ...(versions.length > 1
      ? [`the harness ran in ${versions.length} versions: ${versions.join(", ")}`]
      : []),
  ];
}
