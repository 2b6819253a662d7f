/**
 * Owns the steps of a run: groups in, committed versions out, until the last one. Performs the effects of the
 * training actor. Does not own the lease, recovery or version 0 (trainer.ts).
 *
 * S1  The order of groups is the stream's own, read with an ordered follower; the durable `<run>_trainer` only
 *     carries acknowledgements. A restart therefore goes on at once, without waiting for redelivery.
 * S2  A group is acknowledged after the version that consumed it is committed, announced and recorded.
 */
import { filter, GroupRecordSchema, type RunConfig, type StepRecord } from "@mortise/contracts";
import { Actor, type Consuming, type Following, type ServiceContext } from "@mortise/kernel";
import type { Alarm, Objective } from "@mortise/objectives";
import { CommitGate } from "./commit/commit-gate.js";
import type { Committer } from "./commit/committer.js";
import type { OnPhase } from "./commit/phases.js";
import type { Recovered } from "./commit/recover.js";
import type { Compute } from "./compute/compute.js";
import type { LedgerKeeper } from "./ledger-keeper.js";
import type { Receipts } from "./receipts.js";
import type { BatchGroup } from "./step/form-batch.js";
import { MEAN_TURNS } from "./step/step-record.js";
import { takeStep } from "./step/take-step.js";
import type { TrainerMetrics } from "./trainer-metrics.js";
import { onMessage, type TrainingEffect, type TrainingMessage, type TrainingState } from "./training.js";

/** Groups held un-acknowledged by the durable; far above any batch, and within the consumer's own limit. */
const HELD_GROUPS = 16_384;
const STOP_GRACE_MS = 1_000;

export interface StepLoopOptions {
  readonly context: ServiceContext;
  readonly config: RunConfig;
  readonly objective: Objective;
  readonly compute: Compute;
  readonly metrics: TrainerMetrics;
  readonly onPhase: OnPhase;
  readonly committer: Committer;
  readonly ledger: LedgerKeeper;
  readonly receipts: Receipts;
  readonly fence: number;
  /** Where training stands: steps go on from here. */
  readonly position: Recovered;
}

export class StepLoop {
  readonly #options: StepLoopOptions;
  readonly #actor: Actor<TrainingState, TrainingMessage, TrainingEffect>;
  readonly #gate: CommitGate;
  /** Mean turns per trial, by step. */
  readonly #turns: number[] = [];
  #position: Recovered;
  #lastLoss: number | null = null;
  #following: Following | undefined;
  #consuming: Consuming | undefined;

  constructor(options: StepLoopOptions) {
    const { context, config, position } = options;
    const { version, cursor } = position.checkpoint.facts;
    this.#options = options;
    this.#position = position;
    this.#gate = new CommitGate(cursor);
    this.#actor = new Actor<TrainingState, TrainingMessage, TrainingEffect>({
      name: "training",
      initial: {
        version,
        cursor,
        queue: [],
        phase: "held",
        lastStep: config.trainer.steps,
        rules: {
          groupsPerStep: config.trainer.groupsPerStep,
          refillDropped: config.trainer.refillDropped,
          staleBound: config.async.maxStaleness,
        },
      },
      reduce: onMessage,
      perform: (effect, self) => this.#perform(effect, self),
      onFault: (error) => {
        if (!context.signal.aborted) context.fail(error);
      },
    });
  }

  get phase(): TrainingState["phase"] {
    return this.#actor.state.phase;
  }

  get version(): number {
    return this.#position.checkpoint.facts.version;
  }

  get lastLoss(): number | null {
    return this.#lastLoss;
  }

  /** Resolves when every group decided so far is read. Nothing is trained before `begin`. */
  async read(earlier: readonly StepRecord[]): Promise<void> {
    const { context, config, ledger } = this.#options;
    for (const record of earlier) this.#noteTurns(record);
    this.#following = await context.bus.follow({
      stream: "GROUPS",
      filters: [filter.groups(config.run.id)],
      from: "first",
      schema: GroupRecordSchema,
      onMessage: (record, meta) => {
        ledger.group(record);
        this.#actor.send({ kind: "group", group: { sequence: meta.sequence, record } });
      },
    });
    await this.#following.caughtUp;
  }

  async begin(): Promise<void> {
    const { context, config, metrics } = this.#options;
    const { version, cursor } = this.#position.checkpoint.facts;
    metrics.version(version);
    this.#actor.send({ kind: "committed", version, cursor });
    this.#consuming = await context.bus.consume({
      stream: "GROUPS",
      durable: `${config.run.id}_trainer`,
      schema: GroupRecordSchema,
      concurrency: HELD_GROUPS,
      handle: (_record, meta) => this.#gate.committed(meta.sequence, meta.signal), // S1, S2
    });
  }

  /** Lets the step under way end; groups that are not committed go back. */
  async stop(): Promise<void> {
    await this.#following?.stop();
    await this.#actor.stop();
    await this.#consuming?.stop(STOP_GRACE_MS);
  }

  async #perform(effect: TrainingEffect, self: { send(message: TrainingMessage): void }): Promise<void> {
    const { context, config, objective, compute, onPhase, committer, receipts, fence } = this.#options;
    if (effect.kind === "finished") {
      context.log.info({ event: "trainer.finished", version: this.version });
      return;
    }
    const { next, raised } = await takeStep({
      bus: context.bus,
      config,
      objective,
      compute,
      step: effect.step,
      batch: effect.batch,
      updates: this.#position.checkpoint.facts.updates,
      earlierTurns: this.#turns,
      enginesCurrent: receipts.enginesAt(effect.step - 1),
      fence,
    });
    const committed = await committer.commit(next, this.#position.current);
    this.#position = committed;
    this.#gate.advance(next.cursor); // S2
    onPhase("acknowledged", next.version);
    this.#note(committed.record!, effect.batch, raised);
    self.send({ kind: "committed", version: next.version, cursor: next.cursor });
  }

  /** One wide event a step, metrics, and what later steps compare with. */
  #note(record: StepRecord, batch: readonly BatchGroup[], raised: readonly Alarm[]): void {
    const { context, metrics, receipts } = this.#options;
    this.#noteTurns(record);
    this.#lastLoss = record.loss;
    metrics.step(record, batch, receipts.mismatches);
    for (const alarm of raised) {
      metrics.alarm(alarm.name);
      context.log.warn({ event: "trainer.alarm", step: Number(record.step), ...alarm });
    }
    context.log.info({
      event: "step.committed",
      step: Number(record.step),
      groups: record.groups.length,
      staleGroups: record.staleGroups.length,
      meanReward: record.meanReward,
      loss: record.loss,
      gradientNorm: record.gradientNorm,
      staleness: record.staleness?.max,
      pearson: record.consistency?.pearsonProbability,
      maxAbsDelta: record.consistency?.maxAbsDelta,
      independentTokens: Number(record.consistency?.independentTokens ?? 0),
      independentMaxAbsDelta: record.consistency?.independentMaxAbsDelta,
      computeCpuMs: record.computeCpuMs,
      wallMs: record.wallMs,
    });
  }

  #noteTurns(record: StepRecord): void {
    const turns = record.scalars.find((scalar) => scalar.name === MEAN_TURNS)?.value;
    if (turns !== undefined) this.#turns.push(turns);
  }
}
