/**
 * Owns a captured trial as an ATIF trajectory: one step a message and one a turn, each turn with the exact ids it was
 * sampled under, its own ids and their log-probabilities. The agent's thread is the trajectory; each other thread of
 * agents is embedded in it.
 *
 * E1  Ids are those that were captured; text is what they spell, for reading.
 * E2  Whatever must not be trained is marked is_copied_context, with the reason: turns of helpers, replies that were
 *     abandoned, messages that a rewritten history repeats.
 */
import {
  foldAdoption,
  MAIN_THREAD,
  trainableTokens,
  unpackIds,
  unpackLogProbabilities,
} from "@mortise/capture";
import { Delivery, ExclusionReason, FinishReason } from "@mortise/contracts";
import type { ContextMessage } from "../report/context-messages.js";
import type { PolicyText } from "../report/policy-text.js";
import { type ReadTurn, readTranscript } from "../report/transcripts.js";
import { ATIF_VERSION, type AtifStep, type AtifSubagent, AtifTrajectory } from "./atif-schema.js";
import type { ExportedTrial } from "./exported-trial.js";

/** @throws ZodError never for a trial that was captured: what is written is held against the schema */
export function atifTrajectory(trial: ExportedTrial, text: PolicyText): AtifTrajectory {
  const read = readTranscript(trial.turns, text);
  const threads = [...new Set(read.map(({ turn }) => turn.thread))];
  const main = threads.includes(MAIN_THREAD) ? MAIN_THREAD : threads[0]!;
  const trainable = trainableByTurn(trial);
  const threadOf = (thread: string) => read.filter(({ turn }) => turn.thread === thread);
  const subagents = threads.filter((thread) => thread !== main);
  const { fact, reward, run } = trial;
  return AtifTrajectory.parse({
    ...documentOf(trial, main, new Steps(threadOf(main), trainable, subagentRefs(trial, read, main))),
    ...(subagents.length === 0
      ? {}
      : {
          subagent_trajectories: subagents.map((thread) =>
            documentOf(trial, thread, new Steps(threadOf(thread), trainable, new Map())),
          ),
        }),
    extra: {
      run,
      set: fact.set,
      group: fact.group,
      task: fact.task,
      termination: fact.termination,
      verdict: fact.verdict ?? null,
      reward: reward ?? null,
    },
  } satisfies AtifTrajectory);
}

function documentOf(trial: ExportedTrial, thread: string, steps: Steps): AtifSubagent {
  const model = trial.turns.find((turn) => turn.thread === thread)?.model ?? "";
  const all = steps.all;
  const total = (field: "prompt_tokens" | "completion_tokens" | "cached_tokens") =>
    all.reduce((sum, { metrics }) => sum + (metrics?.[field] ?? 0), 0);
  return {
    schema_version: ATIF_VERSION,
    session_id: trial.seal.session === "" ? trial.fact.trial : trial.seal.session,
    trajectory_id: trajectoryId(trial, thread),
    agent: {
      name: trial.harness,
      version: trial.harnessVersion,
      ...(model === "" ? {} : { model_name: model }),
    },
    steps: all,
    final_metrics: {
      total_prompt_tokens: total("prompt_tokens"),
      total_completion_tokens: total("completion_tokens"),
      total_cached_tokens: total("cached_tokens"),
      total_steps: all.length,
    },
  };
}

interface Trainable {
  readonly tokens: number;
  /** Why the rest is not; of no meaning when all may be trained. */
  readonly reason: ExclusionReason;
}

function trainableByTurn({ turns, seal }: ExportedTrial): ReadonlyMap<string, Trainable> {
  const adoption = foldAdoption(turns);
  const delivery = new Map(seal.turns.map((sealed) => [sealed.turn, sealed.delivery]));
  return new Map(
    turns.map((turn) => {
      const sampled = turn.sampledIds.byteLength / 4;
      const known = delivery.get(turn.turn) ?? Delivery.UNSPECIFIED;
      return [turn.turn, trainableTokens(turn, sampled, adoption, known)];
    }),
  );
}

/** By the turn that started them: names of the trajectories of sub-agents. */
function subagentRefs(
  trial: ExportedTrial,
  read: readonly ReadTurn[],
  main: string,
): ReadonlyMap<string, readonly string[]> {
  const refs = new Map<string, string[]>();
  for (const { turn } of read) {
    if (turn.spawnedBy === "" || turn.thread === main) continue;
    const known = refs.get(turn.spawnedBy) ?? [];
    const id = trajectoryId(trial, turn.thread);
    if (!known.includes(id)) refs.set(turn.spawnedBy, [...known, id]);
  }
  return refs;
}

function trajectoryId({ fact }: ExportedTrial, thread: string): string {
  return thread === MAIN_THREAD ? fact.trial : `${fact.trial}/${thread}`;
}

/** The steps of one thread, numbered from 1. */
class Steps {
  readonly all: AtifStep[] = [];
  private readonly trainable: ReadonlyMap<string, Trainable>;
  private readonly refs: ReadonlyMap<string, readonly string[]>;
  private readonly seen = new Set<string>();

  constructor(
    thread: readonly ReadTurn[],
    trainable: ReadonlyMap<string, Trainable>,
    refs: ReadonlyMap<string, readonly string[]>,
  ) {
    this.trainable = trainable;
    this.refs = refs;
    for (const one of thread) {
      for (const message of one.added) this.message(message, one);
      this.turn(one);
    }
  }

  /** Results of calls are the observation of the step that made them. */
  private message({ role, text }: ContextMessage, { turn, isWhole }: ReadTurn): void {
    if (role === "tool") return;
    const key = `${role}\n${text}`;
    const isRepeated = isWhole && this.seen.has(key);
    this.seen.add(key);
    this.all.push({
      step_id: this.all.length + 1,
      timestamp: timeOf(turn.startedAtMs),
      source: role === "system" ? "system" : "user",
      message: text,
      ...(isRepeated ? { is_copied_context: true } : {}),
      ...(role === "unknown" ? { extra: { role: "unknown" } } : {}),
    });
  }

  private turn(read: ReadTurn): void {
    const { turn, reply } = read;
    const sampled = turn.sampledIds.byteLength / 4;
    const { tokens, reason } = this.trainable.get(turn.turn)!;
    const excluded = spelled(ExclusionReason[reason]);
    this.all.push({
      step_id: this.all.length + 1,
      timestamp: timeOf(turn.endedAtMs),
      source: "agent",
      ...(turn.model === "" ? {} : { model_name: turn.model }),
      message: reply.text,
      ...(reply.reasoning === "" ? {} : { reasoning_content: reply.reasoning }),
      ...(reply.calls.length === 0 ? {} : { tool_calls: reply.calls.map(callOf) }),
      ...observationOf(read, this.refs.get(turn.turn) ?? []),
      metrics: metricsOf(read),
      llm_call_count: 1,
      ...(tokens === 0 && sampled > 0 ? { is_copied_context: true } : {}),
      extra: {
        turn: turn.turn,
        purpose: turn.purpose,
        finish: spelled(FinishReason[turn.finish]),
        trainable_tokens: tokens,
        ...(tokens < sampled ? { excluded } : {}),
      },
    });
  }
}

function callOf({ id, name, arguments: text, isCut }: ReadTurn["reply"]["calls"][number], at: number) {
  const given = isCut ? undefined : objectIn(text);
  return {
    tool_call_id: callId(id, at),
    function_name: name,
    arguments: given ?? {},
    // What is no object has no place in arguments; it is kept as it was sampled.
    ...(given === undefined ? { extra: { malformed_arguments: text, is_cut: isCut } } : {}),
  };
}

function observationOf({ reply, results }: ReadTurn, refs: readonly string[]): Pick<AtifStep, "observation"> {
  const shown = reply.calls.flatMap(({ id }, at) =>
    results[at] === undefined ? [] : [{ source_call_id: callId(id, at), content: results[at] }],
  );
  const started = refs.map((id) => ({ subagent_trajectory_ref: [{ trajectory_id: id }] }));
  return shown.length + started.length === 0 ? {} : { observation: { results: [...shown, ...started] } };
}

/** E1. Log-probabilities are all there or absent (C10): the format has no place for a missing one. */
function metricsOf({ turn, context }: ReadTurn): NonNullable<AtifStep["metrics"]> {
  const sampled = unpackIds(turn.sampledIds);
  const logProbabilities = unpackLogProbabilities(turn.logProbabilities);
  const isKnown = logProbabilities.length === sampled.length && !logProbabilities.some(Number.isNaN);
  return {
    prompt_tokens: context.length,
    completion_tokens: sampled.length,
    cached_tokens: turn.prefixLength,
    prompt_token_ids: [...context],
    completion_token_ids: [...sampled],
    ...(isKnown && sampled.length > 0 ? { logprobs: [...logProbabilities] } : {}),
    extra: {
      policy_versions: turn.spans.map(({ start, length, policyVersion }) => ({
        start,
        length,
        version: Number(policyVersion),
      })),
      ...(turn.appliedSampling?.temperature === undefined
        ? {}
        : { temperature: turn.appliedSampling.temperature }),
    },
  };
}

function callId(id: string, at: number): string {
  return id === "" ? `call-${at}` : id;
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function timeOf(epochMs: bigint): string {
  return new Date(Number(epochMs)).toISOString();
}

function spelled(name: string | undefined): string {
  return (name ?? "unspecified").toLowerCase().replaceAll("_", "-");
}
