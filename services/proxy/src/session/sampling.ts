/**
 * Owns making one planned turn: the engine samples ids, the reply says what they spell as they come, and the
 * immutable record says what was sampled (C1, C7). Does not store it and decides nothing about it (session.ts).
 */
import { randomBytes } from "node:crypto";
import { digestText } from "@mortise/capture";
import { MortiseError, type Turn } from "@mortise/contracts";
import { echoedText, type ModelRequest } from "@mortise/dialects";
import type { Clock } from "@mortise/kernel";
import type { RunPolicy } from "../run-policy.js";
import { endlessPeriod } from "./repetition.js";
import { type Reply, ReplyBuilder } from "./reply.js";
import type { Stopwatch } from "./stopwatch.js";
import type { SessionTerms } from "./token.js";
import { type PlannedTurn, turnRecord } from "./turn.js";

export interface Sampling {
  readonly plan: PlannedTurn;
  readonly terms: SessionTerms;
  readonly policy: RunPolicy;
  readonly request: ModelRequest;
  readonly reply: Reply;
  /** Aborted: the turn ends with what there is. */
  readonly signal: AbortSignal;
  readonly stopwatch: Stopwatch;
  readonly clock: Clock;
}

/**
 * Samples the turn to its end and returns its record.
 * @throws the signal's reason when it was cut before anything was sampled; MORTISE_PROVIDER_ENGINE
 */
export async function sampleTurn(sampling: Sampling): Promise<Turn> {
  const { plan, policy, request, reply, signal, stopwatch, clock } = sampling;
  const builder = new ReplyBuilder(replySyntax(policy, request), (call) => callId(plan.turn, call));
  const generated = await generate(sampling, builder);
  if (generated.ids.length === 0) throw signal.aborted ? signal.reason : nothingSampled();
  stopwatch.lap("sample");
  reply.reasoningTokens = builder.reasoningTokens;
  reply.close();
  return turnRecord(plan, generated, builder, {
    engine: generated.engine ?? policy.engine.id,
    requested: request.requested,
    textDigest: digestText(echoedText(request, builder.text, builder.calls.length > 0)),
    isEndless: endlessPeriod(withoutEnd(generated.ids, policy.stopIds)) !== undefined,
    bytesDelivered: reply.bytesDelivered,
    endedAt: clock.now(),
  });
}

/** How sampled ids of a reply to this request are read. */
export function replySyntax(policy: RunPolicy, { conversation, toolChoice }: ModelRequest) {
  const { tokenizer, renderer, toolFormat, stopIds } = policy;
  const { reasoning, opensInReasoning } = renderer.traits;
  const { tools } = conversation;
  const hasCalls = tools.length > 0 && toolChoice.mode !== "none";
  const format = hasCalls ? toolFormat : undefined;
  return { tokenizer, format, tools, reasoning, opensInReasoning, stopIds };
}

async function generate(sampling: Sampling, builder: ReplyBuilder) {
  const { plan, terms, policy, request, reply, signal, stopwatch } = sampling;
  let taken = 0;
  const onIds = (ids: readonly number[]) => {
    if (taken === 0) stopwatch.lap("first");
    taken += ids.length;
    reply.say(builder.push(ids));
  };
  const generated = await policy.engine.generate({
    affinity: terms.trial,
    contextIds: plan.contextIds,
    maxTokens: plan.maxTokens,
    temperature: plan.temperature,
    stopIds: policy.stopIds,
    rngKey: terms.rngKey,
    turnIndex: plan.index,
    onIds: request.isStream ? onIds : undefined,
    signal,
  });
  reply.say([...builder.push(generated.ids.subarray(taken)), ...builder.end()]);
  return generated;
}

function withoutEnd(ids: Int32Array, stopIds: ReadonlySet<number>): Int32Array {
  return stopIds.has(ids.at(-1)!) ? ids.subarray(0, -1) : ids;
}

/** Differs between processes: a turn that was never recorded may be sampled again under its number. */
const PROCESS_NONCE = randomBytes(6).toString("hex");

/** Unique in a session; letters, digits, '-' and '_' only. A replayed reply takes its ids from the record. */
function callId(turn: string, ordinal: number): string {
  return `call_${turn}_${ordinal}_${PROCESS_NONCE}`;
}

function nothingSampled(): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "The engine sampled nothing." });
}
