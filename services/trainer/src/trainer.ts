/**
 * Owns one run's training from the lease to the loop of steps: who trains, from which version, with which parts.
 * Does not own the steps themselves (step-loop.ts); does not pick tasks, start sandboxes or route turns.
 *
 * T1  Nothing is written before the lease is held, and losing it ends the process.
 * T2  What an earlier process left behind is settled before anything new is begun (commit/recover.ts).
 */
import { join } from "node:path";
import {
  filter,
  LEASE_TTL_MS,
  MetricsRecordSchema,
  MortiseError,
  type RunConfig,
  type StepRecord,
} from "@mortise/contracts";
import { Lease, type ServiceContext } from "@mortise/kernel";
import type { Objective } from "@mortise/objectives";
import { CheckpointStore } from "./commit/checkpoint-store.js";
import { Committer } from "./commit/committer.js";
import type { OnPhase } from "./commit/phases.js";
import { Publication } from "./commit/publication.js";
import { type Recovered, recover } from "./commit/recover.js";
import type { Compute } from "./compute/compute.js";
import { LedgerKeeper } from "./ledger-keeper.js";
import { Receipts } from "./receipts.js";
import { StepLoop } from "./step-loop.js";
import type { TrainerMetrics } from "./trainer-metrics.js";
import type { TrainingState } from "./training.js";

/** What the trainer is doing; from the first version on, the phase of its steps. */
export type TrainerState = "waiting-for-lease" | "recovering" | "warm-start" | TrainingState["phase"];

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
  #preparing: "waiting-for-lease" | "recovering" | "warm-start" = "waiting-for-lease";
  #lease: Lease | undefined;
  #loop: StepLoop | undefined;

  constructor(options: TrainerOptions) {
    this.#options = options;
    const root = join(options.context.stateDirectory, options.config.run.id);
    this.#store = new CheckpointStore(root, options.config.policy.checkpoint);
    this.#receipts = new Receipts(options.context.log);
  }

  get state(): TrainerState {
    return this.#loop?.phase ?? this.#preparing;
  }

  /** Undefined before version 0 is published. */
  get version(): number | undefined {
    return this.#loop?.version;
  }

  get lastLoss(): number | null {
    return this.#loop?.lastLoss ?? null;
  }

  /** Resolves when the run is being trained; the rest happens as groups arrive. */
  async start(): Promise<void> {
    const { context, config } = this.#options;
    const { bus } = context;
    this.#lease = await this.#acquire(); // T1
    this.#preparing = "recovering";
    await this.#ledger.start(bus, config.run.id);
    await this.#receipts.start(bus, config.run.id);
    const earlier = await this.#readSteps();
    const { fence } = this.#lease;
    const { publication, committer } = this.#committing(fence);
    const recovered = await recover(this.#store, publication);
    const position = recovered ?? (await this.#begin(committer));
    const parts = { committer, ledger: this.#ledger, receipts: this.#receipts };
    const loop = new StepLoop({ ...this.#options, ...parts, fence, position });
    this.#loop = loop;
    // The ledger of a step's record needs its groups: they are read before a cut commit is finished.
    await loop.read(earlier);
    if (recovered) await this.#takeUp(recovered, committer); // T2
    const { version, cursor } = position.checkpoint.facts;
    context.log.info({ event: "trainer.at", version, cursor });
    await loop.begin();
  }

  async stop(): Promise<void> {
    await this.#loop?.stop();
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

  #committing(fence: number): { publication: Publication; committer: Committer } {
    const { context, config, objective, onPhase } = this.#options;
    const { bus, log } = context;
    const run = config.run.id;
    const publication = new Publication({ bus, run, checkpoint: config.policy.checkpoint, fence, onPhase });
    const committer = new Committer({
      bus,
      log,
      run,
      seed: config.run.seed,
      fence,
      store: this.#store,
      publication,
      ledger: this.#ledger,
      kept: Math.max(config.trainer.keepCheckpoints, config.async.maxStaleness + 1),
      keepsFirst: objective.kl !== undefined,
      onPhase,
    });
    return { publication, committer };
  }

  /** Steps recorded earlier, oldest first. */
  async #readSteps(): Promise<StepRecord[]> {
    const records: StepRecord[] = [];
    const following = await this.#options.context.bus.follow({
      stream: "METRICS",
      filters: [filter.metrics(this.#options.config.run.id)],
      from: "first",
      schema: MetricsRecordSchema,
      onMessage: ({ record }) => {
        if (record.case !== "step") return;
        this.#ledger.step(record.value);
        records.push(record.value);
      },
    });
    await following.caughtUp;
    await following.stop();
    return records;
  }

  /** Version 0: supervised fine-tuning, or the checkpoint as it is. */
  async #begin(committer: Committer): Promise<Recovered> {
    const { compute, config } = this.#options;
    this.#preparing = "warm-start";
    const { warmStart } = config;
    const { weights, optimizer } = warmStart
      ? await compute.ask<"warm-start">({ kind: "warm-start", task: { ...warmStart, seed: config.run.seed } })
      : await compute.ask<"initial">({ kind: "initial" });
    return committer.commit({ version: 0, weights, optimizer, cursor: 0, updates: 0, groups: [] }, undefined);
  }

  /** Finishes the commit that may have been cut, and loads its weights with the older ones still needed. */
  async #takeUp({ current, checkpoint }: Recovered, committer: Committer): Promise<void> {
    const { compute, config, objective } = this.#options;
    await committer.settle(current, checkpoint);
    const { version } = checkpoint.facts;
    const versions = await this.#store.versions();
    const needed = versions.filter((one) => one < version && one >= version - config.async.maxStaleness);
    const older = await Promise.all(
      needed.map(async (one) => ({ version: one, weights: (await this.#store.read(one)).weights })),
    );
    const reference = objective.kl ? { reference: (await this.#store.read(0)).weights } : {};
    const { weights, optimizer } = checkpoint;
    await compute.ask<"load">({ kind: "load", task: { version, weights, optimizer, older, ...reference } });
  }
}
