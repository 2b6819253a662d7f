/**
 * Owns one case: a fresh home and repository, a session, the harness run to its end with the case's faults, and
 * everything that was seen judged. Leaves nothing but its directory.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type HarnessAdapter, type Runtime, STANDARD_PATH, type WireApi } from "@mortise/harness";
import { account } from "./accounting.js";
import { type ConformanceCase, WIDE } from "./cases.js";
import { runHarness } from "./harness-process.js";
import { type Observed, observedText, problemsOf, relationOf } from "./observed.js";
import { INSTRUCTION } from "./plan.js";
import { PlayedPolicy } from "./played-policy.js";
import { Relay } from "./relay.js";
import { makeRepository, reachedMarks } from "./repository.js";
import type { ConformanceWorld, OpenTrial } from "./world.js";

/** Exponential waits of a harness fit into it, also on a machine that is busy otherwise. */
const TIMEOUT_MS = 900_000;
const MODEL_NAME = "policy";
const MAX_OUTPUT_TOKENS = 4_096;
/** Silence on the wire after which what was sampled has reached the harness. */
const QUIET_MS = 400;
const LOOK_INTERVAL_MS = 20;

export interface CaseRun {
  readonly adapter: HarnessAdapter;
  readonly runtime: Runtime;
  readonly wireApi: WireApi;
  readonly conformanceCase: ConformanceCase;
  /** Tokens of the harness's first prompt, when a case before has shown them. */
  readonly firstPromptTokens: number;
  readonly directory: string;
  readonly signal: AbortSignal;
}

export interface CaseResult {
  readonly wireApi: WireApi;
  readonly case: string;
  readonly outcome: "pass" | "fail" | "n/a";
  /** Why it is not applicable, or what is wrong. */
  readonly reasons: readonly string[];
  readonly turns: number;
  /** Turns by how they hang in the tree. */
  readonly alignment: Readonly<Record<string, number>>;
  readonly tokens: { readonly sampled: number; readonly trainable: number; readonly excluded: number };
  readonly firstPromptTokens: number;
  readonly ms: number;
}

export async function runCase(world: ConformanceWorld, run: CaseRun): Promise<CaseResult> {
  const { adapter, conformanceCase, firstPromptTokens } = run;
  const vocabulary = adapter.tools(run.wireApi);
  let policy: PlayedPolicy | undefined;
  const trial = await world.open(
    conformanceCase.window?.(firstPromptTokens, vocabulary) ?? WIDE,
    (tokenizer) => {
      policy = new PlayedPolicy({ tokenizer, vocabulary, plan: conformanceCase.plan });
      return policy.choose;
    },
  );
  const relay = await Relay.start(trial.modelAddress);
  try {
    relay.refuseNext(...(conformanceCase.refusals?.(run.wireApi) ?? []));
    const workspace = join(run.directory, "workspace");
    const process = await underFaults(trial, relay, () => launch(run, trial, relay, workspace));
    const { turns, seal } = await world.close(trial);
    const { trial: assembled, problems } = account(turns, seal, policy!.played);
    const observed: Observed = {
      adapter,
      process,
      end: adapter.ending(process),
      turns,
      seal,
      trial: assembled,
      played: policy!.played,
      calls: relay.modelCalls,
      marks: await reachedMarks(workspace),
    };
    const reasons = [...problems, ...problemsOf(observed, conformanceCase.claims(adapter, run.wireApi))];
    await writeFile(join(run.directory, "observed.json"), observedText(observed));
    return { ...resultOf(run, observed), outcome: reasons.length === 0 ? "pass" : "fail", reasons };
  } finally {
    await relay.stop();
  }
}

async function launch(run: CaseRun, trial: OpenTrial, relay: Relay, workspace: string) {
  const { adapter, runtime, conformanceCase } = run;
  const home = join(run.directory, "home");
  await mkdir(home, { recursive: true });
  await makeRepository(workspace);
  const target = {
    runtime: runtime.directory,
    home,
    workspace,
    modelUrl: relay.origin,
    key: trial.token,
    model: MODEL_NAME,
    wireApi: run.wireApi,
    instruction: adapter.instruct(INSTRUCTION),
    contextTokens: conformanceCase.told?.(adapter, run.firstPromptTokens) ?? WIDE,
    maxOutputTokens: MAX_OUTPUT_TOKENS,
    node: process.execPath,
    python: runtime.python,
    path: STANDARD_PATH,
  };
  return runHarness(adapter.launch(target), { cwd: workspace, timeoutMs: TIMEOUT_MS, signal: run.signal });
}

/** Runs the harness; whenever the engine holds a reply half-way, the connection dies and the engine goes on. */
async function underFaults<T>(trial: OpenTrial, relay: Relay, run: () => Promise<T>): Promise<T> {
  let isOver = false;
  const running = run().finally(() => {
    isOver = true;
  });
  const cutting = (async () => {
    while (!isOver) {
      const [held] = trial.engine.held;
      if (held) {
        await relay.cut(QUIET_MS);
        held.release();
      }
      await sleep(LOOK_INTERVAL_MS);
    }
  })();
  const [result] = await Promise.all([running, cutting]);
  return result;
}

function resultOf({ wireApi, conformanceCase }: CaseRun, observed: Observed) {
  const { turns, trial, process } = observed;
  const alignment: Record<string, number> = {};
  for (const turn of turns) alignment[relationOf(turn)] = (alignment[relationOf(turn)] ?? 0) + 1;
  const excluded = [...(trial?.exclusions.values() ?? [])].reduce((sum, tokens) => sum + tokens, 0);
  const first = observed.played.find(({ kind }) => kind === "main");
  return {
    wireApi,
    case: conformanceCase.name,
    turns: turns.length,
    alignment,
    tokens: {
      sampled: trial?.sampledTokens ?? Number(observed.seal.sampledTokens),
      trainable: trial?.trainableTokens ?? 0,
      excluded,
    },
    firstPromptTokens: first?.request.contextIds.length ?? 0,
    ms: Math.round(process.ms),
  };
}

export function notApplicable(wireApi: WireApi, name: string, reason: string): CaseResult {
  return {
    wireApi,
    case: name,
    outcome: "n/a",
    reasons: [reason],
    turns: 0,
    alignment: {},
    tokens: { sampled: 0, trainable: 0, excluded: 0 },
    firstPromptTokens: 0,
    ms: 0,
  };
}
