/**
 * Owns which sessions live in this replica: opened by the scheduler, found again by their token or trial after
 * a restart, gone once sealed, out of memory while nobody calls. Holds nothing that the journal does not (S2 in
 * session.ts), but for a remnant of what this replica alone saw.
 */
import { foldDelivery } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { Bus, Clock, Log } from "@mortise/kernel";
import { withTrace } from "@mortise/kernel";
import type { ProxyMetrics } from "../metrics.js";
import type { RunPolicies } from "../run-policy.js";
import { Journal, type JournalContents } from "./journal.js";
import { sessionEnded } from "./refusals.js";
import { type Seal, sealRecord } from "./seal.js";
import { type Remnant, Session, type SessionEvents } from "./session.js";
import type { Spool } from "./spool.js";
import type { SessionTerms } from "./token.js";

/** Sealed sessions known by name, so that a dead token is refused without reading the stream. */
const MAX_SEALED = 4096;
/** Seals kept whole, for a scheduler that asks again at once; each lists all turns of its session. */
const MAX_SEALS = 32;
/**
 * A session nobody called for so long, longer than agents wait for a tool or a test run, is read from the journal
 * when somebody does again.
 */
export const IDLE_MS = 15 * 60_000;
/** Looked at when a session is asked for, the one unused for longest first. */
const LOOKED_AT = 4;
/** Sessions out of memory of which a remnant is kept; of older ones it is lost, as in a restart. */
const MAX_REMNANTS = 65_536;
/** A seal competes with turns of a session that another replica still serves; each attempt reads again. */
const MAX_SEAL_ATTEMPTS = 5;

interface Live {
  readonly loading: Promise<Session>;
  readonly usedAt: number;
}

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
  /** The one that was asked for last stands last. */
  private readonly live = new Map<string, Live>();
  private readonly remnants = new Map<string, Remnant>();
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
    this.putAside();
    const known = this.live.get(key);
    if (known) {
      this.live.delete(key);
      this.live.set(key, { ...known, usedAt: this.options.clock.now() });
      return known.loading;
    }
    if (this.sealed.has(key)) return Promise.reject(sessionEnded());
    const loading = this.load(terms, patienceMs);
    this.live.set(key, { loading, usedAt: this.options.clock.now() });
    loading.catch(() => this.forget(key, loading));
    return loading;
  }

  /** Seals a trial, known here or not. Idempotent: the first seal on the stream is the answer for ever. */
  async seal(run: string, trial: string): Promise<Seal> {
    const key = keyOf({ run, trial });
    for (let attempt = 1; ; attempt++) {
      const known = this.seals.get(key);
      if (known) return known;
      const loading = this.live.get(key)?.loading;
      try {
        const session = await loading?.catch(() => undefined);
        const seal = session ? await session.seal() : await this.sealFromJournal(run, trial);
        this.keep(key, seal);
        return seal;
      } catch (error) {
        const isConflict =
          error instanceof MortiseError && error.code === "MORTISE_TRANSPORT_SEQUENCE_CONFLICT";
        if (!isConflict || attempt === MAX_SEAL_ATTEMPTS) throw error;
      } finally {
        if (loading) this.forget(key, loading);
      }
    }
  }

  /** Waits until nothing is being sampled, then cuts what still is when `signal` is aborted. */
  async drain(signal: AbortSignal): Promise<void> {
    const sessions = await Promise.all(
      [...this.live.values()].map(({ loading }) => loading.catch(() => undefined)),
    );
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
    const remnant = this.remnants.get(keyOf(terms));
    return new Session({ terms, policy, journal, spool, clock, events }, contents, remnant);
  }

  /** Out of memory with the sessions nobody called for IDLE_MS. */
  private putAside(): void {
    const now = this.options.clock.now();
    for (const [key, { loading, usedAt }] of [...this.oldest(LOOKED_AT)])
      if (now - usedAt >= IDLE_MS) void this.putAsideOnce(key, loading, usedAt);
  }

  private *oldest(count: number): Iterable<[string, Live]> {
    for (const entry of this.live) {
      if (count-- === 0) return;
      yield entry;
    }
  }

  private async putAsideOnce(key: string, loading: Promise<Session>, usedAt: number): Promise<void> {
    const session = await loading.catch(() => undefined);
    const entry = this.live.get(key);
    if (!session || entry?.loading !== loading || entry.usedAt !== usedAt) return;
    this.live.delete(key);
    if (session.isAtRest) {
      this.remnants.set(key, session.remnant);
      this.options.metrics.putAside.inc();
      dropOldest(this.remnants, MAX_REMNANTS);
    } else this.live.set(key, { loading, usedAt: this.options.clock.now() });
  }

  private async sealFromJournal(run: string, trial: string): Promise<Seal> {
    const journal = new Journal(this.options.bus, run, trial);
    const contents = await journal.read();
    if (contents.seal) return contents.seal;
    const turns = contents.turns.map(({ turn }) => turn);
    const remnant = this.remnants.get(keyOf({ run, trial }));
    const delivery = foldDelivery(turns, remnant?.delivery ?? new Map());
    const record = sealRecord(
      { run, trial, isEvaluation: isEvaluation(contents) },
      {
        turns,
        sequences: new Map(contents.turns.map(({ turn, sequence }) => [turn.turn, sequence])),
        deliveryOf: (turn) => delivery.get(turn)!,
        lastSequence: contents.lastSequence,
        budgetReached: remnant?.budgetReached ?? "",
        failure: remnant?.failure ?? "",
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
        void this.drop(keyOf(terms), session);
      },
    };
  }

  /** A session read again meanwhile stays. */
  private forget(key: string, loading: Promise<Session>): void {
    if (this.live.get(key)?.loading === loading) this.live.delete(key);
  }

  private async drop(key: string, session: Session): Promise<void> {
    const loading = this.live.get(key)?.loading;
    if (loading && (await loading.catch(() => undefined)) === session) this.forget(key, loading);
  }

  private keep(key: string, seal: Seal): void {
    const isNew = !this.sealed.has(key);
    this.sealed.add(key);
    this.seals.set(key, seal);
    this.remnants.delete(key);
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
