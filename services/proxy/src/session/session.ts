/**
 * Owns one trial's session: its turn tree, the replies in the making, budgets, and the seal. Everything that
 * matters is in the journal; a session is rebuilt from it at any time, by any replica. Does not own tokens,
 * sockets or the engine.
 *
 * S1  A turn is journalled before its reply ends, and joins the tree only then (C3).
 * S2  Appends go one at a time, each after the sequence this session knows; a session that lost the race is
 *     dropped and read again, and its replies fail with an error the harness retries.
 * S3  A request that goes on from an unfinished reply ends that reply's sampling and is attached to what there
 *     is of it (C4, adopted partial); any other broken connection leaves the turn to its retry (R1).
 */
import {
  align,
  type Call,
  callerOf,
  DigestMemory,
  type RequestDigests,
  readSignals,
  TurnTree,
  unpackIds,
  unpackLogProbabilities,
} from "@mortise/capture";
import { Delivery, FinishReason, MortiseError, type Turn } from "@mortise/contracts";
import type { ModelRequest, ReplyTokens } from "@mortise/dialects";
import { type Clock, fromUnknown, withTrace } from "@mortise/kernel";
import type { RunPolicy } from "../run-policy.js";
import { Budget } from "./budget.js";
import { Deliveries } from "./deliveries.js";
import type { Journal, JournalContents } from "./journal.js";
import { adopted, callerLeft, notStoredYet, sessionEnded, stopping, tooManyAtOnce } from "./refusals.js";
import { type Connection, Reply } from "./reply.js";
import { RunningTurn } from "./running-turn.js";
import { replySyntax, sampleTurn } from "./sampling.js";
import { type Seal, sealRecord } from "./seal.js";
import type { Spool } from "./spool.js";
import { Stopwatch, type TurnPart } from "./stopwatch.js";
import type { SessionTerms } from "./token.js";
import { type PlannedTurn, planTurn, recordBytes, renderContext, type TurnInputs } from "./turn.js";

/** One model call as it came: its body, read, and what its headers say about the caller. */
export interface ModelCall {
  readonly request: ModelRequest;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Whether the caller still waits for the answer. */
  isConnected(): boolean;
}

/** Turns one session may have at the engine: several times what a harness with sub-agents asks for at once. */
export const MAX_RUNNING_TURNS = 64;

/** Beyond so many times the longest context tokens are not counted one by one. */
const COUNTED_CONTEXTS = 4;

/** What a session tells about itself, for metrics. */
export interface SessionEvents {
  captured(turn: Turn, plan: PlannedTurn, times: ReadonlyMap<TurnPart, number>): void;
  coalesced(how: "joined" | "replayed"): void;
  /** A turn failed, and nobody had cut it. */
  failed(turn: string, error: MortiseError): void;
  /** The journal knows more than this session: forget it (S2). */
  overtaken(session: Session): void;
}

/** What of a session the journal does not say; little enough to be kept while the session itself is not. */
export interface Remnant {
  readonly delivery: ReadonlyMap<string, Delivery>;
  readonly budgetReached: Budget["reached"];
  readonly failure: string;
}

export interface SessionParts {
  readonly terms: SessionTerms;
  readonly policy: RunPolicy;
  readonly journal: Journal;
  readonly spool: Spool;
  readonly clock: Clock;
  readonly events: SessionEvents;
}

/** An engine stops within a step and the journal answers within milliseconds; an outage takes longer than this. */
const CAPTURE_PATIENCE_MS = 10_000;

export class Session {
  readonly terms: SessionTerms;
  private readonly parts: SessionParts;
  private readonly tree = new TurnTree();
  private readonly sequences = new Map<string, number>();
  private readonly deliveries = new Deliveries();
  private readonly digests = new DigestMemory();
  private readonly running = new Set<RunningTurn>();
  private readonly budget: Budget;
  private lastSequence: number;
  private nextIndex: number;
  private tail: Promise<unknown> = Promise.resolve();
  /** Resolves when what is being rendered is; undefined when nothing is. */
  private planning: Promise<unknown> | undefined;
  private failure = "";
  private sealing: Promise<Seal> | undefined;

  constructor(parts: SessionParts, journal: JournalContents, remnant?: Remnant) {
    this.parts = parts;
    this.terms = parts.terms;
    this.lastSequence = journal.lastSequence;
    this.nextIndex = Math.max(-1, ...journal.turns.map(({ turn }) => turn.index)) + 1;
    this.budget = new Budget(parts.terms.budget, parts.clock);
    for (const { turn, sequence } of journal.turns) {
      this.remember(turn, sequence);
      this.budget.restore(turn, this.tree.contextLengthOf(turn.turn));
    }
    if (!remnant) return;
    this.deliveries.restore(remnant.delivery);
    this.budget.reached = remnant.budgetReached;
    this.failure = remnant.failure;
  }

  /** The name harnesses are told. */
  get modelName(): string {
    return this.parts.policy.config.policy.name;
  }

  /** Whether nobody waits for anything here: what the journal says and `remnant` are all there is. */
  get isAtRest(): boolean {
    return this.running.size === 0 && !this.planning && !this.sealing && this.deliveries.isSettled;
  }

  get remnant(): Remnant {
    return {
      delivery: this.deliveries.unproven,
      budgetReached: this.budget.reached,
      failure: this.failure,
    };
  }

  /** Resolves when nothing is being rendered or sampled, or waits to be stored. */
  async idle(): Promise<void> {
    while (this.running.size > 0 || this.planning) await Promise.all([this.planning, this.sampled()]);
  }

  /**
   * The reply to a call: joined, replayed, or sampled anew. Resolves before anything is sampled.
   * @throws MortiseError for calls that are refused: budget, context length, tools without a parser, full spool
   */
  async ask(call: ModelCall): Promise<Connection> {
    this.refuseIfSealing();
    const seen = this.alignable(call);
    await this.planned();
    this.refuseIfSealing();
    const known = this.coalesce(seen.digests, call.request);
    if (known) return known.connect();
    await this.captureExtended(seen.digests);
    this.refuseIfSealing();
    return this.sample(call, seen);
  }

  /**
   * Tokens of the context the call would be sampled under if it were asked now; about as many, where that is far
   * more than the context may have. @throws as `ask`
   */
  async countTokens(call: Omit<ModelCall, "isConnected">): Promise<number> {
    this.refuseIfSealing();
    const inputs = this.inputs(call.request, this.alignable(call));
    try {
      return (await renderContext(inputs, COUNTED_CONTEXTS * this.parts.policy.maxPositions)).contextIds
        .length;
    } catch (error) {
      const isLonger = error instanceof MortiseError && error.code === "MORTISE_PROVIDER_CONTEXT_LENGTH";
      if (!isLonger) throw error;
      return Number(error.detail.tokens);
    }
  }

  /** Ids and log-probabilities of a captured turn. */
  tokensOf(id: string): ReplyTokens {
    const turn = this.tree.turns.find((one) => one.turn === id)!;
    const logProbabilities = unpackLogProbabilities(turn.logProbabilities);
    return {
      promptIds: this.tree.contextOf(id),
      ids: unpackIds(turn.sampledIds),
      logProbabilities: logProbabilities.length > 0 ? logProbabilities : undefined,
    };
  }

  /** Ends the session: cuts what is being sampled, records it, publishes the seal. Idempotent. */
  seal(): Promise<Seal> {
    this.sealing ??= this.sealOnce();
    return this.sealing;
  }

  /** Cuts what is being sampled without sealing: the process ends, a retry is served from the journal. */
  async interrupt(): Promise<void> {
    this.cutAll(stopping());
    await this.sampled();
  }

  private async sampled(): Promise<void> {
    while (this.running.size > 0) await Promise.all([...this.running].map((turn) => turn.done));
  }

  private refuseIfSealing(): void {
    if (this.sealing) throw sessionEnded();
  }

  /** C6: the same body, answered with a reply that nobody has and nobody is getting. */
  private coalesce(digests: RequestDigests, request: ModelRequest): { connect(): Connection } | undefined {
    for (const turn of this.running)
      if (turn.isJoinedBy(digests)) {
        this.parts.events.coalesced("joined");
        return turn;
      }
    const turn = this.tree.sameBody(digests).at(-1);
    if (!turn || this.deliveries.isBeingRead(turn.turn)) return undefined;
    if (this.deliveries.of(turn.turn) === Delivery.DELIVERED) return undefined;
    // An aborted turn was cut by us, not by its connection: nothing to replay.
    if (turn.finish === FinishReason.ABORT) return undefined;
    const promptTokens = this.tree.contextLengthOf(turn.turn);
    const reply = Reply.fromTurn(turn, replySyntax(this.parts.policy, request), promptTokens);
    this.deliveries.watch(reply);
    this.parts.events.coalesced("replayed");
    return reply;
  }

  /** S3 */
  private async captureExtended(digests: RequestDigests): Promise<void> {
    const extended = [...this.running].filter((turn) => turn.isOrphaned && turn.isExtendedBy(digests));
    for (const turn of extended) turn.cut(adopted());
    const captured = Promise.all(extended.map((turn) => turn.done));
    if (extended.length > 0) await within(CAPTURE_PATIENCE_MS, captured, this.parts.clock);
  }

  /** The call as the aligner sees it. */
  private alignable({ request, headers }: Omit<ModelCall, "isConnected">): Call {
    const { conversation, toolChoice } = request;
    const signals = readSignals({ ...request, headers });
    return {
      conversation,
      signals,
      digests: this.digests.digest(conversation, toolChoice, callerOf(signals)),
    };
  }

  /** Where the call hangs in the tree, and whose tokens it makes. */
  private inputs(request: ModelRequest, call: Call): TurnInputs {
    const { terms, policy, clock } = this.parts;
    const alignment = align(this.tree, call, {
      deliveryOf: (turn) => this.deliveries.of(turn),
      textOf: (turn) => Reply.fromTurn(turn, replySyntax(policy, request), 0).text,
    });
    return {
      terms,
      policy,
      request,
      call,
      alignment,
      tree: this.tree,
      index: this.nextIndex,
      now: clock.now(),
    };
  }

  /** Calls of a session are planned one after the other, in the order they came: each may extend the one before. */
  private async planned(): Promise<void> {
    while (this.planning) await this.planning;
  }

  private async sample({ request, isConnected }: ModelCall, call: Call): Promise<Connection> {
    const { clock, spool } = this.parts;
    const stopwatch = new Stopwatch(clock);
    await this.planned();
    if (!isConnected()) throw callerLeft();
    if (this.running.size >= MAX_RUNNING_TURNS) throw tooManyAtOnce(MAX_RUNNING_TURNS);
    spool.refuseIfFull();
    this.budget.check();
    const inputs = this.inputs(request, call);
    const planning = this.plan(inputs);
    if (!(planning instanceof Promise)) return this.start(planning, { inputs, stopwatch }).connect();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.planning = promise;
    try {
      const plan = await planning;
      this.refuseIfSealing();
      const connection = this.start(plan, { inputs, stopwatch }).connect();
      // What waits for this call must see at once whether it may join it.
      if (!isConnected()) connection.lost();
      return connection;
    } finally {
      this.planning = undefined;
      resolve();
    }
  }

  private start(
    plan: PlannedTurn,
    { inputs, stopwatch }: { inputs: TurnInputs; stopwatch: Stopwatch },
  ): RunningTurn {
    const { terms, clock } = this.parts;
    const { request, call, alignment } = inputs;
    const maxTokens = this.budget.reserve(plan.known.thread!, plan.contextIds.length, plan.maxTokens);
    this.nextIndex++;
    this.tree.calls.opened(plan.turn, call, alignment);
    stopwatch.lap("plan");
    const reply = new Reply(plan.turn, plan.contextIds.length);
    const turn = new RunningTurn({ reply, digests: call.digests, clock }, (signal) =>
      withTrace(`${terms.run}/${terms.trial}`, () =>
        this.run({ ...plan, maxTokens }, { request, reply, signal, stopwatch }),
      ),
    );
    this.running.add(turn);
    void turn.done.then(() => this.running.delete(turn));
    return turn;
  }

  private plan(inputs: TurnInputs): PlannedTurn | Promise<PlannedTurn> {
    try {
      const rendered = renderContext(inputs, this.parts.policy.maxPositions - 1);
      if (!(rendered instanceof Promise)) return planTurn(inputs, rendered);
      return rendered
        .then((context) => planTurn(inputs, context))
        .catch((error: unknown) => this.refused(inputs, error));
    } catch (error) {
      return this.refused(inputs, error);
    }
  }

  /** A call that is refused is remembered: a harness that is told its context is too long compacts next. */
  private refused(inputs: TurnInputs, error: unknown): never {
    const { calls } = this.tree;
    const refused = `${this.terms.trial}-r${calls.size}`;
    calls.opened(refused, inputs.call, inputs.alignment);
    calls.failed(refused, error instanceof MortiseError && error.code === "MORTISE_PROVIDER_CONTEXT_LENGTH");
    throw error;
  }

  private async run(
    plan: PlannedTurn,
    making: { request: ModelRequest; reply: Reply; signal: AbortSignal; stopwatch: Stopwatch },
  ): Promise<void> {
    const { terms, policy, clock, events } = this.parts;
    const { reply, signal, stopwatch } = making;
    let isCaptured = false;
    try {
      const turn = await sampleTurn({ plan, terms, policy, clock, ...making });
      await this.append(turn);
      stopwatch.lap("journal");
      isCaptured = true;
      this.failure = "";
      this.deliveries.watch(reply);
      this.budget.captured(turn);
      events.captured(turn, plan, stopwatch.times);
      if (turn.finish === FinishReason.ABORT) throw signal.reason;
      reply.end({
        finish: turn.finish,
        promptTokens: plan.contextIds.length,
        cachedTokens: turn.prefixLength,
        completionTokens: turn.sampledIds.byteLength / 4,
        reasoningTokens: reply.reasoningTokens,
      });
    } catch (error) {
      const known = fromUnknown(error, "MORTISE_PROVIDER_ENGINE");
      if (!isCaptured) {
        this.budget.release(plan.contextIds.length);
        this.tree.calls.failed(plan.turn);
      }
      if (!signal.aborted) {
        this.failure = known.code;
        events.failed(plan.turn, known);
      }
      reply.fail(known);
    }
  }

  /** S1, S2 */
  private append(turn: Turn): Promise<void> {
    const { journal, spool, events } = this.parts;
    return spool.hold(recordBytes(turn), () => {
      const appended = this.tail.then(async () => {
        const sequence = await spool.store(() => journal.appendTurn(turn, this.lastSequence));
        this.remember(turn, sequence);
      });
      this.tail = appended.catch(() => {});
      return appended.catch((error: unknown) => {
        events.overtaken(this);
        throw error;
      });
    });
  }

  private remember(turn: Turn, sequence: number): void {
    this.tree.add(turn);
    this.deliveries.captured(turn);
    this.sequences.set(turn.turn, sequence);
    this.lastSequence = sequence;
  }

  private cutAll(reason: MortiseError): void {
    for (const turn of this.running) turn.cut(reason);
  }

  private async sealOnce(): Promise<Seal> {
    this.cutAll(sessionEnded());
    // What is still being rendered is refused when it is (refuseIfSealing).
    await this.sampled();
    const record = sealRecord(this.terms, {
      turns: this.tree.turns,
      sequences: this.sequences,
      deliveryOf: (turn) => this.deliveries.of(turn),
      lastSequence: this.lastSequence,
      budgetReached: this.budget.reached,
      failure: this.failure,
    });
    const { run, trial } = this.terms;
    const sequence = await withTrace(`${run}/${trial}`, () =>
      this.parts.journal.appendSeal(record, this.lastSequence),
    );
    return { record, sequence };
  }
}

/** Waits for what another turn has to be, but not so long that a client without an answer gives up. */
async function within(ms: number, done: Promise<unknown>, clock: Clock): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const cancel = clock.after(ms, () => reject(notStoredYet(ms)));
  await Promise.race([done, promise]).finally(cancel);
}
