/**
 * Owns the commit of a version, phase by phase (phases.ts), and what is left of older versions afterwards.
 * Does not compute anything.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { MetricsRecordSchema, type StepRecord, StepRecordSchema, subject } from "@mortise/contracts";
import type { Bus, Log } from "@mortise/kernel";
import type { LedgerKeeper } from "../ledger-keeper.js";
import { CHECKPOINT_FORMAT, type Checkpoint, type CheckpointStore } from "./checkpoint-store.js";
import type { OnPhase } from "./phases.js";
import { type Current, digestOf, type Publication } from "./publication.js";
import type { Recovered } from "./recover.js";

export interface CommitterOptions {
  readonly bus: Bus;
  readonly log: Log;
  readonly run: string;
  readonly seed: number;
  readonly fence: number;
  readonly store: CheckpointStore;
  readonly publication: Publication;
  readonly ledger: LedgerKeeper;
  /** Newest versions kept on disk and in the object store. */
  readonly kept: number;
  /** Whether version 0 is needed for the whole run, as reference of a KL term. */
  readonly keepsFirst: boolean;
  readonly onPhase: OnPhase;
}

/** A version that was computed and is not yet real. */
export interface NewVersion {
  readonly version: number;
  readonly weights: Uint8Array;
  readonly optimizer: Uint8Array;
  readonly cursor: number;
  readonly updates: number;
  readonly groups: readonly string[];
  /** Absent for version 0. */
  readonly record?: StepRecord;
}

/** A version that is real, with its published record (version 0 has none). */
export interface Committed extends Recovered {
  readonly record?: StepRecord;
}

export class Committer {
  readonly #options: CommitterOptions;

  constructor(options: CommitterOptions) {
    this.#options = options;
  }

  /** Stores, publishes, announces and records a version that follows `from`. */
  async commit(next: NewVersion, from: Current | undefined): Promise<Committed> {
    const { store, publication, onPhase } = this.#options;
    const checkpoint = this.#checkpointOf(next, from);
    onPhase("computed", next.version);
    const staged = await store.stage(checkpoint);
    onPhase("staged", next.version);
    await store.store(staged, next.version);
    onPhase("stored", next.version);
    const current = await publication.publish(checkpoint, from);
    const record = await this.settle(current, checkpoint);
    return { current, checkpoint, ...(record ? { record } : {}) };
  }

  /** Announces and records the current version if that has not been done, and drops what is no longer needed. */
  async settle(current: Current, checkpoint: Checkpoint): Promise<StepRecord | undefined> {
    await this.#options.publication.announce(current);
    const record =
      checkpoint.record.length === 0 ? undefined : fromBinary(StepRecordSchema, checkpoint.record);
    const published = record && (await this.#record(record));
    this.#options.onPhase("recorded", checkpoint.facts.version);
    await this.#forget(checkpoint.facts.version);
    return published;
  }

  /** Publishes a step's record with the ledger as it is after the step (C5). */
  async #record(record: StepRecord): Promise<StepRecord> {
    const { bus, run, ledger } = this.#options;
    const place = subject.step(run, record.step);
    const known = await bus.last("METRICS", place, MetricsRecordSchema);
    if (known?.message.record.case === "step") {
      ledger.step(known.message.record.value);
      return known.message.record.value;
    }
    ledger.step(record);
    const complete = create(StepRecordSchema, record);
    const folded = await this.#folded();
    if (folded) complete.ledger = folded;
    await bus.publish({
      subject: place,
      schema: MetricsRecordSchema,
      message: { record: { case: "step", value: complete } },
      dedupeId: `${run}/step/${record.step}`,
    });
    return complete;
  }

  /** A ledger that does not balance is an alarm and an absent field, not an end of training. */
  async #folded() {
    try {
      return await this.#options.ledger.ledger();
    } catch (error) {
      this.#options.log.error({ event: "ledger.broken", err: error });
      return undefined;
    }
  }

  /** The object goes before the directory that names it, so that nothing is left that no directory names. */
  async #forget(version: number): Promise<void> {
    const { store, publication, kept, keepsFirst } = this.#options;
    const isKept = (one: number) => one > version - kept || (keepsFirst && one === 0);
    const all = await Promise.all((await store.versions()).map((one) => store.facts(one)));
    // Steps without an update share their weights: the bytes stay while any kept version has them.
    const needed = new Set(all.filter((facts) => isKept(facts.version)).map((facts) => facts.sha256));
    for (const { version: one, sha256 } of all) {
      if (isKept(one)) continue;
      if (!needed.has(sha256)) await publication.withdraw(sha256);
      await store.remove(one);
    }
  }

  #checkpointOf(next: NewVersion, from: Current | undefined): Checkpoint {
    const { run, seed, fence } = this.#options;
    return {
      facts: {
        format: CHECKPOINT_FORMAT,
        run,
        version: next.version,
        sha256: digestOf(next.weights),
        baseSha256: from?.manifest.sha256 ?? null,
        cursor: next.cursor,
        updates: next.updates,
        groups: [...next.groups],
        seed,
        fence,
      },
      weights: next.weights,
      optimizer: next.optimizer,
      record: next.record ? toBinary(StepRecordSchema, next.record) : new Uint8Array(),
    };
  }
}
