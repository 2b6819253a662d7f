/**
 * Owns which sessions live in this replica: opened by the scheduler, found again by their token or trial after
 * a restart, gone once sealed. Holds nothing that the journal does not (S2 in session.ts).
 */
import { foldDelivery } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { Bus, Clock, Log } from "@mortise/kernel";
import { withTrace } from "@mortise/kernel";
import type { ProxyMetrics } from "../metrics.js";
import type { RunPolicies } from "../run-policy.js";
import { Journal, type JournalContents } from "./journal.js";
import { type Seal, sealRecord } from "./seal.js";
import { Session, type SessionEvents, sessionEnded } from "./session.js";
import type { Spool } from "./spool.js";
import type { SessionTerms } from "./token.js";

/** Sealed sessions known by name, so that a dead token is refused without reading the stream. */
const MAX_SEALED = 4096;
/** Seals kept whole, for a scheduler that asks again at once; each lists all turns of its session. */
const MAX_SEALS = 32;
/** A seal competes with turns of a session that another replica still serves; each attempt reads again. */
const MAX_SEAL_ATTEMPTS = 5;

export interface SessionsOptions {
  readonly bus: Bus;
  readonly log: Log;
  readonly clock: Clock;
  readonly metrics: ProxyMetrics;
  readonly policies: RunPolicies;
  readonly spool: Spool;
}

export class Sessions {
  private readonly options: SessionsOptions;
  private readonly live = new Map<string, Promise<Session>>();
  private readonly sealed = new Set<string>();
  private readonly seals = new Map<string, Seal>();

  constructor(options: SessionsOptions) {
    this.options = options;
  }

  get openCount(): number {
    return this.live.size;
  }

  /**
   * The session of these terms, from memory or from the journal. Waits `patienceMs` for the run's weights.
   * @throws MortiseError MORTISE_PROVIDER_UNAUTHORIZED once sealed, MORTISE_PROVIDER_ENGINE before weights
   */
  obtain(terms: SessionTerms, patienceMs = 0): Promise<Session> {
    const key = keyOf(terms);
    const known = this.live.get(key);
    if (known) return known;
    if (this.sealed.has(key)) return Promise.reject(sessionEnded());
    const loading = this.load(terms, patienceMs);
    this.live.set(key, loading);
    loading.catch(() => this.live.delete(key));
    return loading;
  }

  /** Seals a trial, known here or not. Idempotent: the first seal on the stream is the answer for ever. */
  async seal(run: string, trial: string): Promise<Seal> {
    const key = keyOf({ run, trial });
    for (let attempt = 1; ; attempt++) {
      const known = this.seals.get(key);
      if (known) return known;
      const live = this.live.get(key);
      try {
        const session = await live?.catch(() => undefined);
        const seal = session ? await session.seal() : await this.sealFromJournal(run, trial);
        this.keep(key, seal);
        return seal;
      } catch (error) {
        const isConflict =
          error instanceof MortiseError && error.code === "MORTISE_TRANSPORT_SEQUENCE_CONFLICT";
        if (!isConflict || attempt === MAX_SEAL_ATTEMPTS) throw error;
      } finally {
        if (this.live.get(key) === live) this.live.delete(key);
      }
    }
  }

  /** Waits until nothing is being sampled, then cuts what still is when `signal` is aborted. */
  async drain(signal: AbortSignal): Promise<void> {
    const sessions = await Promise.all([...this.live.values()].map((one) => one.catch(() => undefined)));
    const cut = () => {
      for (const session of sessions) void session?.interrupt();
      this.options.spool.close();
    };
    signal.addEventListener("abort", cut, { once: true });
    await Promise.all(sessions.map((session) => session?.idle()));
    signal.removeEventListener("abort", cut);
  }

  private async load(terms: SessionTerms, patienceMs: number): Promise<Session> {
    const { bus, clock, policies, spool } = this.options;
    const policy = await policies.serving(terms.run, patienceMs);
    const journal = new Journal(bus, terms.run, terms.trial);
    const contents = await journal.read();
    if (contents.seal) {
      this.keep(keyOf(terms), contents.seal);
      throw sessionEnded();
    }
    const events = this.eventsOf(terms);
    return new Session({ terms, policy, journal, spool, clock, events }, contents);
  }

  private async sealFromJournal(run: string, trial: string): Promise<Seal> {
    const journal = new Journal(this.options.bus, run, trial);
    const contents = await journal.read();
    if (contents.seal) return contents.seal;
    const turns = contents.turns.map(({ turn }) => turn);
    const delivery = foldDelivery(turns, new Map());
    const record = sealRecord(
      { run, trial, isEvaluation: isEvaluation(contents) },
      {
        turns,
        sequences: new Map(contents.turns.map(({ turn, sequence }) => [turn.turn, sequence])),
        deliveryOf: (turn) => delivery.get(turn)!,
        lastSequence: contents.lastSequence,
        budgetReached: "",
        failure: "",
      },
    );
    const append = () => journal.appendSeal(record, contents.lastSequence);
    return { record, sequence: await withTrace(`${run}/${trial}`, append) };
  }

  private eventsOf(terms: SessionTerms): SessionEvents {
    const { metrics, log } = this.options;
    const { run, trial } = terms;
    return {
      captured: (turn, plan, times) => metrics.captured(turn, plan.contextIds.length, times),
      coalesced: (how) => metrics.coalesced.inc({ how }),
      failed: (turn, err) => log.error({ event: "turn.failed", run, trial, turn, err }),
      overtaken: (session) => {
        metrics.overtaken.inc();
        void this.forget(keyOf(terms), session);
      },
    };
  }

  /** A session read again meanwhile stays. */
  private async forget(key: string, session: Session): Promise<void> {
    const live = this.live.get(key);
    if ((await live?.catch(() => undefined)) === session && this.live.get(key) === live)
      this.live.delete(key);
  }

  private keep(key: string, seal: Seal): void {
    const isNew = !this.sealed.has(key);
    this.sealed.add(key);
    this.seals.set(key, seal);
    dropOldest(this.sealed, MAX_SEALED);
    dropOldest(this.seals, MAX_SEALS);
    if (isNew) this.report(seal);
  }

  /** One wide event a session. */
  private report({ record, sequence }: Seal): void {
    this.options.metrics.sealed.inc();
    this.options.log.info({
      event: "session.sealed",
      run: record.run,
      trial: record.trial,
      evaluation: record.evaluation,
      turns: record.turns.length,
      sampledTokens: Number(record.sampledTokens),
      lowestVersion: record.lowestVersion === undefined ? null : Number(record.lowestVersion),
      highestVersion: record.highestVersion === undefined ? null : Number(record.highestVersion),
      budgetReached: record.budgetReached,
      failure: record.failure,
      sequence,
    });
  }
}

/** A trial without turns has no tokens to count, in either ledger. */
function isEvaluation(contents: JournalContents): boolean {
  return contents.turns[0]?.turn.evaluation ?? false;
}

function keyOf({ run, trial }: { run: string; trial: string }): string {
  return `${run}/${trial}`;
}

function dropOldest(kept: Set<string> | Map<string, unknown>, limit: number): void {
  for (const oldest of kept.keys()) {
    if (kept.size <= limit) return;
    kept.delete(oldest);
  }
}
