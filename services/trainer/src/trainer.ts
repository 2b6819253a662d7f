/**
 * Owns one run's training from the lease to the last step: it wires the parts and performs the effects of the
 * training actor. Does not pick tasks, start sandboxes or route turns.
 *
 * T1  Nothing is written before the lease is held, and losing it ends the process.
 * T2  The order of groups is the stream's own, read with an ordered follower; the durable `<run>_trainer` only
 *     carries acknowledgements. A restart therefore goes on at once, without waiting for redelivery.
 * T3  A group is acknowledged after the version that consumed it is committed, recorded and announced.
 */
import { join } from "node:path";
import {
  filter,
  GroupRecordSchema,
  LEASE_TTL_MS,
  MetricsRecordSchema,
  MortiseError,
  type RunConfig,
  type StepRecord,
} from "@mortise/contracts";
import { Actor, type Consuming, type Following, Lease, type ServiceContext } from "@mortise/kernel";
import type { Alarm, Objective } from "@mortise/objectives";
import { CheckpointStore } from "./commit/checkpoint-store.js";
import { CommitGate } from "./commit/commit-gate.js";
import { Committer } from "./commit/committer.js";
import type { OnPhase } from "./commit/phases.js";
import { Publication } from "./commit/publication.js";
import { type Recovered, recover } from "./commit/recover.js";
import type { Compute } from "./compute/compute.js";
import { LedgerKeeper } from "./ledger-keeper.js";
import { Receipts } from "./receipts.js";
import type { BatchGroup } from "./step/form-batch.js";
import { MEAN_TURNS } from "./step/step-record.js";
import { takeStep } from "./step/take-step.js";
import type { TrainerMetrics } from "./trainer-metrics.js";
import { onMessage, type TrainingEffect, type TrainingMessage, type TrainingState } from "./training.js";

/** Groups held un-acknowledged by the durable; far above any batch, and within the consumer's own limit. */
const HELD_GROUPS = 16_384;
const STOP_GRACE_MS = 1_000;

export type TrainerState =
  | "waiting-for-lease"
  | "recovering"
  | "warm-start"
  | "forming"
  | "training"
  | "finished";

export interface TrainerOptions {
  readonly context: ServiceContext;
  readonly config: RunConfig;
  readonly objective: Objective;
  readonly compute: Compute;
  readonly metrics: TrainerMetrics;
  readonly onPhase: OnPhase;
}

export class Trainer {
  readonly #options: TrainerOptions;
  readonly #store: CheckpointStore;
  readonly #ledger = new LedgerKeeper();
  readonly #receipts: Receipts;
  readonly #turns: number[] = [];
  #state: TrainerState = "waiting-for-lease";
  #lease: Lease | undefined;
  #committer: Committer | undefined;
  #position: Recovered | undefined;
  #gate: CommitGate | undefined;
  #actor: Actor<TrainingState, TrainingMessage, TrainingEffect> | undefined;
  #following: Following | undefined;
  #consuming: Consuming | undefined;
  #lastLoss: number | null = null;

  constructor(options: TrainerOptions) {
    this.#options = options;
    const root = join(options.context.stateDirectory, options.config.run.id);
    this.#store = new CheckpointStore(root, options.config.policy.checkpoint);
    this.#receipts = new Receipts(options.context.log);
  }

  get state(): TrainerState {
    return this.#state;
  }

  /** Undefined before version 0 is published. */
  get version(): number | undefined {
    return this.#position?.checkpoint.facts.version;
  }

  get lastLoss(): number | null {
    return this.#lastLoss;
  }

  /** Resolves when the run is being trained; the rest happens as groups arrive. */
  async start(): Promise<void> {
    const { context, config } = this.#options;
    const { bus, log } = context;
    this.#lease = await this.#acquire(); // T1
    this.#state = "recovering";
    await this.#ledger.start(bus, config.run.id);
    await this.#receipts.start(bus, config.run.id);
    await this.#readSteps();
    const publication = new Publication({
      bus,
      run: config.run.id,
      checkpoint: config.policy.checkpoint,
      fence: this.#lease.fence,
      onPhase: this.#options.onPhase,
    });
    this.#committer = this.#newCommitter(publication, this.#lease.fence);
    const recovered = await recover(this.#store, publication);
    if (recovered) await this.#resume(recovered);
    else await this.#begin();
    log.info({ event: "trainer.at", version: this.version, cursor: this.#position!.checkpoint.facts.cursor });
    await this.#train();
  }

  async stop(): Promise<void> {
    await this.#following?.stop();
    await this.#actor?.stop();
    await this.#consuming?.stop(STOP_GRACE_MS);
    await this.#receipts.stop();
    await this.#ledger.stop();
    await this.#lease?.release();
  }

  async #acquire(): Promise<Lease> {
    const { context, config } = this.#options;
    const lease = await Lease.acquire(await context.bus.kv("leases"), `${config.run.id}.trainer`, {
      holder: context.instance,
      ttlMs: LEASE_TTL_MS,
      clock: context.clock,
      signal: context.signal,
    });
    void lease.lost.then(() =>
      context.fail(
        new MortiseError({
          code: "MORTISE_TRANSPORT_FENCED",
          message: `The trainer lease of run ${config.run.id} was lost.`,
        }),
      ),
    );
    return lease;
  }

  #newCommitter(publication: Publication, fence: number): Committer {
    const { context, config, objective, onPhase } = this.#options;
    return new Committer({
      bus: context.bus,
      log: context.log,
      run: config.run.id,
      seed: config.run.seed,
      fence,
      store: this.#store,
      publication,
      ledger: this.#ledger,
      kept: Math.max(config.trainer.keepCheckpoints, config.async.maxStaleness + 1),
      keepsFirst: objective.kl !== undefined,
      onPhase,
    });
  }

  /** Steps recorded earlier: for the ledger and the trends. */
  async #readSteps(): Promise<void> {
    const following = await this.#options.context.bus.follow({
      stream: "METRICS",
      filters: [filter.metrics(this.#options.config.run.id)],
      from: "first",
      schema: MetricsRecordSchema,
      onMessage: ({ record }) => {
        if (record.case !== "step") return;
        this.#ledger.step(record.value);
        const turns = record.value.scalars.find((scalar) => scalar.name === MEAN_TURNS)?.value;
        if (turns !== undefined) this.#turns.push(turns);
      },
    });
    await following.caughtUp;
    await following.stop();
  }

  /** Version 0: supervised fine-tuning, or the checkpoint as it is. */
  async #begin(): Promise<void> {
    const { compute, config } = this.#options;
    this.#state = "warm-start";
    const { warmStart } = config;
    const produced = warmStart
      ? await compute.ask<"warm-start">({ kind: "warm-start", task: { ...warmStart, seed: config.run.seed } })
      : await compute.ask<"initial">({ kind: "initial" });
    this.#position = await this.#committer!.commit(
      {
        version: 0,
        weights: produced.weights,
        optimizer: produced.optimizer,
        cursor: 0,
        updates: 0,
        groups: [],
      },
      undefined,
    );
  }

  /** Finishes the commit that may have been cut, and takes up its weights. */
  async #resume(recovered: Recovered): Promise<void> {
    const { compute, config, objective } = this.#options;
    const { checkpoint } = recovered;
    this.#position = recovered;
    // The ledger of the step's record needs its groups: they are read before the record is published.
    await this.#followGroups(checkpoint.facts.cursor);
    await this.#committer!.settle(recovered.current, checkpoint);
    const { version } = checkpoint.facts;
    const onDisk = await this.#store.versions();
    const older = [];
    for (const one of onDisk) {
      if (one >= version || one < version - config.async.maxStaleness) continue;
      older.push({ version: one, weights: (await this.#store.read(one)).weights });
    }
    await compute.ask<"load">({
      kind: "load",
      task: {
        version,
        weights: checkpoint.weights,
        optimizer: checkpoint.optimizer,
        older,
        ...(objective.kl ? { reference: (await this.#store.read(0)).weights } : {}),
      },
    });
  }

  async #followGroups(cursor: number): Promise<void> {
    const { context, config } = this.#options;
    this.#actor = this.#newActor(cursor);
    this.#following = await context.bus.follow({
      stream: "GROUPS",
      filters: [filter.groups(config.run.id)],
      from: "first",
      schema: GroupRecordSchema,
      onMessage: (record, meta) => {
        this.#ledger.group(record);
        this.#actor!.send({ kind: "group", group: { sequence: meta.sequence, record } });
      },
    });
    await this.#following.caughtUp;
  }

  /** Starts with training held back; `#train` releases it. */
  #newActor(cursor: number): Actor<TrainingState, TrainingMessage, TrainingEffect> {
    const { context, config } = this.#options;
    return new Actor<TrainingState, TrainingMessage, TrainingEffect>({
      name: "training",
      initial: {
        version: this.version!,
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

  async #train(): Promise<void> {
    const { context, config, metrics } = this.#options;
    const { version, cursor } = this.#position!.checkpoint.facts;
    if (!this.#following) await this.#followGroups(cursor);
    metrics.version(version);
    const gate = new CommitGate(cursor);
    this.#gate = gate;
    this.#state = "forming";
    this.#actor!.send({ kind: "committed", version, cursor });
    this.#consuming = await context.bus.consume({
      stream: "GROUPS",
      durable: `${config.run.id}_trainer`,
      schema: GroupRecordSchema,
      concurrency: HELD_GROUPS,
      handle: (_record, meta) => gate.committed(meta.sequence, meta.signal), // T2, T3
    });
  }

  async #perform(effect: TrainingEffect, self: { send(message: TrainingMessage): void }): Promise<void> {
    const { context, config, objective, compute, onPhase } = this.#options;
    if (effect.kind === "finished") {
      this.#state = "finished";
      context.log.info({ event: "trainer.finished", version: this.version });
      return;
    }
    this.#state = "training";
    const { next, raised } = await takeStep({
      bus: context.bus,
      config,
      objective,
      compute,
      step: effect.step,
      batch: effect.batch,
      updates: this.#position!.checkpoint.facts.updates,
      earlierTurns: this.#turns,
      enginesCurrent: this.#receipts.enginesAt(effect.step - 1),
      fence: this.#lease!.fence,
    });
    const committed = await this.#committer!.commit(next, this.#position!.current);
    this.#position = committed;
    this.#gate!.advance(next.cursor); // T3
    onPhase("acknowledged", next.version);
    this.#note(committed.record!, effect.batch, raised);
    this.#state = "forming";
    self.send({ kind: "committed", version: next.version, cursor: next.cursor });
  }

  /** One wide event a step, metrics, and what later steps compare with. */
  #note(record: StepRecord, batch: readonly BatchGroup[], raised: readonly Alarm[]): void {
    const { context, metrics } = this.#options;
    const turns = record.scalars.find((scalar) => scalar.name === MEAN_TURNS)?.value;
    if (turns !== undefined) this.#turns.push(turns);
    this.#lastLoss = record.loss;
    metrics.step(record, batch, this.#receipts.mismatches);
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
      computeCpuMs: record.computeCpuMs,
      wallMs: record.wallMs,
    });
  }
}
