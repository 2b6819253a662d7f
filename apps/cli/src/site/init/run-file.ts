/**
 * Owns the text of a first run file: what a run of these tasks with this harness needs, with a word on each key, and the
 * keys people change next. Numbers that depend on the tasks, the policy and the machine are taken from them.
 */
import { availableParallelism } from "node:os";
import type { DecoderConfig } from "@mortise/policy";
import type { Task } from "@mortise/tasks";
import { stringify } from "smol-toml";
import type { RunEngine } from "./engine.js";

const USUAL_AGENT_SECONDS = 1_800;
const LEAST_VERIFY_SECONDS = 60;
const USUAL_REPLY_TOKENS = 4_096;
const MOST_SLOTS = 16;
const USUAL_GROUPS = 16;
const ATTEMPTS_PER_TASK = 4;
const MOST_ATTEMPTS = 256;
const COMMENT_COLUMN = 29;

export interface RunFileFacts {
  readonly runId: string;
  readonly checkpoint: string;
  readonly policy: DecoderConfig;
  readonly engine: RunEngine;
  readonly harness: string;
  readonly tasks: readonly Task[];
  readonly splits: { readonly train: string; readonly evaluate: string };
  /** Tasks in each. */
  readonly counts: { readonly train: number; readonly evaluate: number };
}

export function runFileText(facts: RunFileFacts): string {
  const { tasks, counts, splits, policy } = facts;
  const slots = Math.min(MOST_SLOTS, 2 * availableParallelism());
  const replyTokens = Math.max(1, Math.min(USUAL_REPLY_TOKENS, Math.floor(policy.maxPositions / 4)));
  const agentSeconds = largest(tasks.map(({ agentTimeoutSec }) => agentTimeoutSec ?? USUAL_AGENT_SECONDS));
  const verifySeconds = largest([LEAST_VERIFY_SECONDS, ...tasks.map(({ verifier }) => verifier.timeoutSec)]);
  const isHeldOut = splits.train !== splits.evaluate;
  return `# What one run does. All keys with their defaults: docs/reference/config.md.
# A run keeps its id, seed, tasks, groups and attempts: for another run copy this file and give it another id.

[run]
${line("id", facts.runId)}
seed = 1                     # of task sampling, initial weights and sampling noise

[policy]
# Hugging Face directory of version 0: config.json, tokenizer, chat template, safetensors.
${line("checkpoint", facts.checkpoint)}

[engine]
${engineLines(facts.engine)}

[tasks]
${line("train", splits.train)}
${line("evaluate", splits.evaluate, isHeldOut ? "" : "none are held out: rates are those of training tasks")}

[rollout]
${line("harness", facts.harness)}
groupSize = 8                # trials of one task, which share a baseline
${line("slots", slots, "agents at once")}
${line("warm", slots, "prepared sandboxes that wait for them")}
maxTurns = 100               # model calls of one trial
${line("maxTokensPerTurn", replyTokens)}
${line("maxResponseTokens", Math.max(100_000, replyTokens), "sampled by one trial")}
maxPromptTokens = 10000000   # sum of the contexts one trial sends
${line("agentTimeoutMs", agentSeconds * 1000, "of the tasks' own limits the longest; a shorter one of a task holds")}
${line("verifyTimeoutMs", Math.ceil(verifySeconds * 1000))}
setupTimeoutMs = 600000      # the first trial waits for images and the harness's runtime
# temperature = 1.0
# keep = "failed"            # leave sandboxes of trials that went wrong, to be looked into: mortise sandbox

[trainer]
steps = 16
${line("groupsPerStep", Math.min(USUAL_GROUPS, counts.train))}
# algorithm = "gspo"         # grpo, drgrpo, rloo, dapo, cispo, ppo, rft
# refillDropped = true       # draw on when all rewards of a group are equal
# microBatchTokens = 16384

# [trainer.optimiser]
# learningRate = 1e-6
# warmupUpdates = 0
# beta1 = 0.9
# beta2 = 0.999
# weightDecay = 0.01

# [warmStart]                # supervised fine-tuning before version 0
# demonstrations = "…"       # JSON lines, one {"messages": […]} each

[evaluation]
${line("attempts", Math.min(MOST_ATTEMPTS, ATTEMPTS_PER_TASK * counts.evaluate), "trials, spread over the tasks, before and after; 0 = none")}
`;
}

function engineLines(engine: RunEngine): string {
  const lines = stringify(engine).trim();
  if (engine.kind !== "vllm") return lines;
  return `${lines}
# weightsDirectory = "…"     # needed to train: proxy and servers see it under one path. docs/engines.md`;
}

function line(key: string, value: string | number, comment = ""): string {
  const text = stringify({ [key]: value }).trim();
  return comment === "" ? text : `${text.padEnd(COMMENT_COLUMN - 1)} # ${comment}`;
}

function largest(values: readonly number[]): number {
  return values.reduce((a, b) => Math.max(a, b), 0);
}
