/**
 * Owns the making of one turn: from a request and its place in the tree to the ids the engine is given, and
 * from what was sampled to the immutable record (C2, C3, C8). Pure; does no I/O.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type Alignment,
  alignmentFields,
  argumentTexts,
  type Call,
  packIds,
  packLogProbabilities,
  type TurnTree,
} from "@mortise/capture";
import { FinishReason, MortiseError, type Turn, TurnRelation, TurnSchema } from "@mortise/contracts";
import type { AuditNote, ModelRequest } from "@mortise/dialects";
import type { RenderNote } from "@mortise/rendering";
import type { Generated } from "../engine/types.js";
import type { RenderOutcome } from "../rendering/render-task.js";
import type { RunPolicy } from "../run-policy.js";
import type { ReplyBuilder } from "./reply.js";
import type { SessionTerms } from "./token.js";

export interface TurnInputs {
  readonly terms: SessionTerms;
  readonly policy: RunPolicy;
  readonly request: ModelRequest;
  /** The same request as the aligner sees it. */
  readonly call: Call;
  readonly alignment: Alignment;
  /** Where the parent's ids are. */
  readonly tree: TurnTree;
  readonly index: number;
  readonly now: number;
}

/** A turn ready to be sampled. */
export interface PlannedTurn {
  readonly turn: string;
  readonly index: number;
  readonly contextIds: Int32Array;
  readonly maxTokens: number;
  readonly temperature: number;
  /** Every field of the record that is known before sampling. */
  readonly known: Omit<MessageInitShape<typeof TurnSchema>, "$typeName" | "$unknown">;
}

/**
 * A turn as it will be sampled.
 * @throws MortiseError MORTISE_PROVIDER_CONTEXT_LENGTH
 */
export function planTurn(inputs: TurnInputs, { contextIds, placed }: RenderedContext): PlannedTurn {
  const { terms, policy, request, call, alignment, index } = inputs;
  const room = policy.maxPositions - contextIds.length;
  if (room < 1) throw tooLong(contextIds.length, policy.maxPositions);
  const temperature = terms.temperature ?? policy.config.rollout.temperature;
  const maxTokens = Math.min(room, terms.maxTokensPerTurn ?? policy.config.rollout.maxTokensPerTurn);
  return {
    turn: `${terms.trial}-t${index}`,
    index,
    contextIds,
    maxTokens,
    temperature,
    known: {
      run: terms.run,
      trial: terms.trial,
      session: terms.trial,
      evaluation: terms.isEvaluation,
      ...alignmentFields(call, alignment, {
        isKept: placed.prefixLength > 0,
        audit: [...request.audit, ...placed.notes, ...stopNotes(request)],
      }),
      relation: placed.relation,
      suffixIds: packIds(placed.suffix),
      historyPolicy: policy.renderer.history,
      dialect: request.dialect,
      startedAtMs: BigInt(inputs.now),
    },
  };
}

/** The ids a request is sampled under, and where they come from. */
export interface RenderedContext {
  readonly contextIds: Int32Array;
  readonly placed: Placement;
}

/**
 * Renders what a request adds to its parent; everything where it has none. At once, or later where it is much.
 * @param maxTokens longest context that is wanted
 * @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST (tools without a parser, messages the template refuses),
 *   MORTISE_PROVIDER_CONTEXT_LENGTH, and as RunRendering.render
 */
export function renderContext(
  inputs: TurnInputs,
  maxTokens: number,
): RenderedContext | Promise<RenderedContext> {
  const { policy, request, alignment, tree } = inputs;
  const { conversation } = request;
  const { parent, prefixLength, keptMessages } = alignment;
  if (conversation.tools.length > 0 && !policy.toolFormat) throw noToolParser();
  // A message takes a token at least.
  if (conversation.messages.length > maxTokens) throw tooLong(conversation.messages.length, maxTokens);
  const hasEnd = parent !== undefined && policy.stopIds.has(tree.idAt(parent.turn, prefixLength - 1)!);
  const kept = parent && { messages: keptMessages, tokens: prefixLength, hasEnd };
  const outcome = policy.rendering.render({ conversation, kept, maxTokens });
  return outcome instanceof Promise
    ? outcome.then((later) => contextOf(inputs, later))
    : contextOf(inputs, outcome);
}

interface Placement {
  readonly relation: TurnRelation;
  readonly prefixLength: number;
  readonly suffix: Int32Array;
  /** What the rendering policies changed. */
  readonly notes: readonly RenderNote[];
}

/** C2: an extension renders only its new messages; everything else is rendered whole. */
function contextOf({ policy, alignment, tree }: TurnInputs, outcome: RenderOutcome): RenderedContext {
  if (outcome.kind === "too-long") throw tooLong(outcome.tokens, policy.maxPositions);
  const { ids: suffix, notes } = outcome.rendering;
  const { parent, prefixLength, relation } = alignment;
  if (parent && outcome.kind === "extension") {
    const contextIds = tree.keptIds(parent.turn, prefixLength, suffix.length);
    contextIds.set(suffix, prefixLength);
    return { contextIds, placed: { relation, prefixLength, suffix, notes } };
  }
  const isCut = parent && relation === TurnRelation.EXTENDS;
  const placed = { relation: isCut ? TurnRelation.BRANCH : relation, prefixLength: 0, suffix, notes };
  return { contextIds: suffix, placed };
}

/** C8: where a reply ends is the policy's to decide; that the harness wanted it elsewhere is kept. */
function stopNotes({ stopSequences }: ModelRequest): AuditNote[] {
  return stopSequences.length > 0 ? [{ what: "stop-sequences-not-applied", field: "stop" }] : [];
}

const FINISH = {
  stop: FinishReason.STOP,
  length: FinishReason.LENGTH,
  abort: FinishReason.ABORT,
} as const;

/** Note of a reply that goes round in circles (repetition.ts). */
export const ENDLESS = "repeats-itself";

/** The record of a sampled turn. */
export function turnRecord(
  plan: PlannedTurn,
  generated: Generated,
  reply: ReplyBuilder,
  facts: {
    engine: string;
    bytesDelivered: number;
    endedAt: number;
    requested: ModelRequest["requested"];
    textDigest: Uint8Array;
    /** Whether the reply goes round in circles. */
    isEndless: boolean;
  },
): Turn {
  return create(TurnSchema, {
    ...plan.known,
    turn: plan.turn,
    index: plan.index,
    sampledIds: packIds(generated.ids),
    logProbabilities: generated.logProbabilities
      ? packLogProbabilities(generated.logProbabilities)
      : new Uint8Array(),
    spans: generated.spans.map((span) => ({
      start: span.start,
      length: span.length,
      policyVersion: BigInt(span.policyVersion),
      staleCache: span.isStaleCache,
    })),
    finish: FINISH[generated.finish],
    audit: [
      ...(plan.known.audit ?? []),
      ...reply.notes.map((what) => ({ what, field: "reply" })),
      ...(facts.isEndless ? [{ what: ENDLESS, field: "reply" }] : []),
    ],
    // A call that was cut off ends where the turn does.
    toolCalls: reply.calls.map(({ id, name, tokenStart, tokenEnd, arguments: given }) => ({
      id,
      name,
      ...(tokenStart !== undefined && { tokenStart }),
      tokenEnd: tokenEnd || generated.ids.length,
      texts: argumentTexts(given),
    })),
    textDigest: facts.textDigest,
    bytesDelivered: BigInt(facts.bytesDelivered),
    requestedSampling: facts.requested,
    appliedSampling: { temperature: plan.temperature, maxTokens: plan.maxTokens },
    engine: facts.engine,
    endedAtMs: BigInt(facts.endedAt),
  });
}

/** About what a turn takes while it waits to be stored. */
export function recordBytes(turn: Turn): number {
  const packed = turn.suffixIds.length + turn.sampledIds.length + turn.logProbabilities.length;
  return packed + turn.messageDigests.reduce((sum, digest) => sum + digest.length, 0);
}

function noToolParser(): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_BAD_REQUEST",
    message: "tools: no parser of tool calls is known for this policy's checkpoint.",
    fix: "Set mortise.tool_format in tokenizer_config.json to the syntax the policy was taught.",
    detail: { field: "tools" },
  });
}

function tooLong(tokens: number, limit: number): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_CONTEXT_LENGTH",
    // Harnesses recognise an overflow by these words and compact their history.
    message: `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`,
    detail: { field: "messages", tokens, limit },
  });
}
