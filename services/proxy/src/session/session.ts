/**
 * Owns one trial's session: its turn tree, the replies in the making, budgets, and the seal. Everything that
 * matters is in the journal; a session is rebuilt from it at any time, by any replica. Does not own tokens,
 * sockets or the engine.
 *
 * S1  A turn is journalled before its reply ends, and joins the tree only then (C3).
 * S2  Appends go one at a time, each after the sequence this session knows; a session that lost the race is
 *     dropped and read again, and its replies fail with an error the harness retries.
 * S3  A broken connection does not stop a turn: the retry finds it (C6). Sealing does.
 */
import { randomBytes } from "node:crypto";
import {
  decideRole,
  digestRequest,
  digestText,
  digestTools,
  foldDelivery,
  type RequestDigests,
  TurnTree,
} from "@mortise/capture";
import { Delivery, FinishReason, MortiseError, type Turn } from "@mortise/contracts";
import type { ModelRequest } from "@mortise/dialects";
import { type Clock, fromUnknown, withTrace } from "@mortise/kernel";
import type { RunPolicy } from "../run-policy.js";
import { Budget } from "./budget.js";
import type { Journal, JournalContents } from "./journal.js";
import { type Connection, Reply, ReplyBuilder } from "./reply.js";
import { type Seal, sealRecord } from "./seal.js";
import type { SessionTerms } from "./token.js";
import { type PlannedTurn, planTurn, turnRecord } from "./turn.js";

/** What a session tells about itself, for metrics. */
export interface SessionEvents {
  captured(turn: Turn, plan: PlannedTurn): void;
  coalesced(how: "joined" | "replayed"): void;
  /** The journal knows more than this session: forget it (S2). */
  overtaken(): void;
}

export interface SessionParts {
  readonly terms: SessionTerms;
  readonly policy: RunPolicy;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly events: SessionEvents;
}

const NO_TOOLS = digestTools([]);

export class Session {
  readonly terms: SessionTerms;
  private readonly parts: SessionParts;
  private readonly tree = new TurnTree();
  private readonly sequences = new Map<string, number>();
  private readonly replies = new Map<string, Reply>();
  private readonly inFlight = new Map<Reply, Promise<void>>();
  private readonly budget: Budget;
  private readonly stop = new AbortController();
  private lastSequence: number;
  private nextIndex: number;
  private tail: Promise<unknown> = Promise.resolve();
  private failure = "";
  private sealing: Promise<Seal> | undefined;

  constructor(parts: SessionParts, journal: JournalContents) {
    this.parts = parts;
    this.terms = parts.terms;
    this.lastSequence = journal.lastSequence;
    this.nextIndex = Math.max(-1, ...journal.turns.map(({ turn }) => turn.index)) + 1;
    this.budget = new Budget(parts.terms.budget, parts.clock);
    for (const { turn, sequence } of journal.turns) {
      this.remember(turn, sequence);
      this.budget.restore(this.tree.contextOf(turn.turn).length, turn.sampledIds.byteLength / 4);
    }
  }

  /** The name harnesses are told. */
  get modelName(): string {
    return this.parts.policy.config.policy.name;
  }

  /** Resolves when nothing is being sampled. */
  async idle(): Promise<void> {
    while (this.inFlight.size > 0) await Promise.all(this.inFlight.values());
  }

  /**
   * The reply to a request: joined, replayed, or sampled anew. Resolves before anything is sampled.
   * @throws MortiseError for requests that are refused: budget, context length, tools without a parser
   */
  async ask(request: ModelRequest): Promise<Connection> {
    this.refuseIfSealing();
    const digests = digestRequest(request.conversation, request.toolChoice);
    const known = this.coalesce(digests, request);
    if (known) return known.connect();
    // A harness may build on a reply whose connection broke: let it be captured first (C4, adopted partial).
    const orphans = [...this.inFlight].filter(([reply]) => reply.isOrphaned);
    if (orphans.length > 0) {
      await Promise.all(orphans.map(([, done]) => done));
      this.refuseIfSealing();
    }
    return this.sample(request, digests).connect();
  }

  /** Ends the session: aborts what is being sampled, records it, publishes the seal. Idempotent. */
  seal(): Promise<Seal> {
    this.sealing ??= this.sealOnce();
    return this.sealing;
  }

  /** Cuts what is being sampled without sealing: the process ends, a retry is served from the journal. */
  async interrupt(): Promise<void> {
    this.stop.abort(new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "The proxy is stopping." }));
    await Promise.all(this.inFlight.values());
  }

  private refuseIfSealing(): void {
    if (this.sealing) throw sessionEnded();
  }

  /** C6: the same body, answered with a reply that nobody has and nobody is getting. */
  private coalesce(digests: RequestDigests, request: ModelRequest): Reply | undefined {
    const same = (body: Uint8Array) => Buffer.compare(body, digests.body) === 0;
    for (const reply of this.inFlight.keys())
      if (reply.isOrphaned && same(reply.bodyDigest)) {
        this.parts.events.coalesced("joined");
        return reply;
      }
    const turn = this.tree.sameBody(digests).at(-1);
    if (!turn || this.deliveries().get(turn.turn) === Delivery.DELIVERED) return undefined;
    const earlier = this.replies.get(turn.turn);
    if (earlier && !earlier.isOrphaned) return undefined;
    // An aborted turn was cut by us, not by its connection: nothing to replay.
    if (turn.finish === FinishReason.ABORT) return undefined;
    const promptTokens = this.tree.contextOf(turn.turn).length;
    const reply = Reply.fromTurn(turn, this.syntaxOf(request), promptTokens);
    this.replies.set(turn.turn, reply);
    this.parts.events.coalesced("replayed");
    return reply;
  }

  private sample(request: ModelRequest, digests: RequestDigests): Reply {
    this.budget.check();
    const index = this.nextIndex;
    const { terms, policy, clock } = this.parts;
    const deliveries = this.deliveries();
    const attachment = this.tree.attach(digests, (turn) => deliveries.get(turn)!);
    const role = decideRole(this.tree.turns, {
      thread: attachment.thread,
      relation: attachment.relation,
      hasTools: request.conversation.tools.length > 0,
      noToolsDigest: NO_TOOLS,
    });
    const parentIds = attachment.parent ? this.tree.idsOf(attachment.parent.turn) : new Int32Array();
    const plan = planTurn({
      terms,
      policy,
      request,
      digests,
      attachment,
      role,
      parentIds,
      index,
      now: clock.now(),
    });
    const maxTokens = this.budget.reserve(plan.contextIds.length, plan.maxTokens);
    this.nextIndex++;
    const reply = new Reply(plan.turn, digests.body);
    const done = withTrace(`${terms.run}/${terms.trial}`, () =>
      this.run({ ...plan, maxTokens }, request, reply),
    );
    this.inFlight.set(reply, done);
    return reply;
  }

  private async run(plan: PlannedTurn, request: ModelRequest, reply: Reply): Promise<void> {
    try {
      const builder = new ReplyBuilder(this.syntaxOf(request), (call) => callId(plan.turn, call));
      const generated = await this.generate(plan, request.isStream, reply, builder);
      if (generated.ids.length === 0) throw this.stop.signal.reason;
      const turn = turnRecord(plan, generated, builder, {
        engine: this.parts.policy.engine.id,
        requested: request.requested,
        textDigest: digestText(builder.text),
        bytesDelivered: reply.bytesDelivered,
        endedAt: this.parts.clock.now(),
      });
      await this.append(turn);
      this.replies.set(turn.turn, reply);
      this.failure = "";
      this.budget.sampled(generated.ids.length);
      this.parts.events.captured(turn, plan);
      if (generated.finish === "abort") throw this.stop.signal.reason;
      const promptTokens = plan.contextIds.length;
      reply.end({
        finish: turn.finish,
        promptTokens,
        cachedTokens: turn.prefixLength,
        completionTokens: generated.ids.length,
        reasoningTokens: 0,
      });
    } catch (error) {
      const known = fromUnknown(error, "MORTISE_PROVIDER_ENGINE");
      if (!this.stop.signal.aborted) this.failure = known.code;
      reply.fail(known);
    } finally {
      this.inFlight.delete(reply);
    }
  }

  /** Samples a turn; the reply says what is sampled, as it comes or at the end. */
  private async generate(plan: PlannedTurn, isStream: boolean, reply: Reply, builder: ReplyBuilder) {
    const { policy, terms } = this.parts;
    let taken = 0;
    const onIds = (ids: readonly number[]) => {
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
      onIds: isStream ? onIds : undefined,
      signal: this.stop.signal,
    });
    reply.say([...builder.push(generated.ids.subarray(taken)), ...builder.end()]);
    return generated;
  }

  /** S1, S2 */
  private append(turn: Turn): Promise<void> {
    const appended = this.tail.then(async () => {
      const sequence = await this.parts.journal.appendTurn(turn, this.lastSequence);
      this.remember(turn, sequence);
    });
    this.tail = appended.catch(() => {});
    return appended.catch((error: unknown) => {
      this.parts.events.overtaken();
      throw error;
    });
  }

  private remember(turn: Turn, sequence: number): void {
    this.tree.add(turn);
    this.sequences.set(turn.turn, sequence);
    this.lastSequence = sequence;
  }

  /** What is known of each turn's reply: an echo proves delivery; of nothing known it is undecided. */
  private deliveries(): Map<string, Delivery> {
    const observed = new Map([...this.replies].map(([turn, reply]) => [turn, reply.delivery]));
    return foldDelivery(this.tree.turns, observed);
  }

  private syntaxOf(request: ModelRequest) {
    const { tokenizer, toolFormat, stopIds } = this.parts.policy;
    const tools = request.conversation.tools;
    const hasCalls = tools.length > 0 && request.toolChoice.mode !== "none";
    return { tokenizer, format: hasCalls ? toolFormat : undefined, tools, stopIds };
  }

  private async sealOnce(): Promise<Seal> {
    this.stop.abort(sessionEnded());
    await Promise.all(this.inFlight.values());
    const record = sealRecord(this.terms, {
      turns: this.tree.turns,
      sequences: this.sequences,
      delivery: this.deliveries(),
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

/** Differs between processes: a turn that was never recorded may be sampled again under its number. */
const PROCESS_NONCE = randomBytes(6).toString("hex");

/** Unique in a session; letters, digits, '-' and '_' only. A replayed reply takes its ids from the record. */
function callId(turn: string, ordinal: number): string {
  return `call_${turn}_${ordinal}_${PROCESS_NONCE}`;
}

/** What a harness is told once the session's token is dead. */
export function sessionEnded(): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_UNAUTHORIZED", message: "The session has ended." });
}
