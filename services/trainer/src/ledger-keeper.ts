/**
 * Owns the run's token ledger in this process: a fold over the seals on CAPTURES, the groups and the steps (C5).
 * Does not own the arithmetic (packages/capture) nor publish it (the step record does).
 */
import { LedgerFold } from "@mortise/capture";
import {
  CaptureRecordSchema,
  filter,
  type GroupRecord,
  type Ledger,
  type StepRecord,
} from "@mortise/contracts";
import type { Bus, Following } from "@mortise/kernel";

/** Seals are on the stream before their group; one that is not read by then is not there. */
const SEALS_LIMIT_MS = 10_000;

export class LedgerKeeper {
  readonly #fold = new LedgerFold();
  readonly #folded = new Set<number>();
  #following: Following | undefined;
  /** Last sequence on CAPTURES seen, and the highest a folded group refers to. */
  #seen = 0;
  #needed = 0;
  #waiting: (() => void)[] = [];

  async start(bus: Bus, run: string): Promise<void> {
    this.#following = await bus.follow({
      stream: "CAPTURES",
      filters: [filter.captures(run)],
      from: "first",
      schema: CaptureRecordSchema,
      onMessage: ({ record }, meta) => {
        if (record.case === "sealed") this.#fold.add({ kind: "seal", record: record.value });
        this.#advance(meta.sequence);
      },
    });
  }

  group(record: GroupRecord): void {
    this.#fold.add({ kind: "group", record });
    for (const member of record.members) this.#needed = Math.max(this.#needed, Number(member.sealSequence));
  }

  step(record: StepRecord): void {
    if (this.#folded.has(Number(record.step))) return;
    this.#folded.add(Number(record.step));
    this.#fold.add({ kind: "step", record });
  }

  /**
   * The ledger once the seals of all folded groups are read.
   * @throws MortiseError MORTISE_CAPTURE_LEDGER when the fold does not balance, a missing seal included.
   */
  async ledger(): Promise<Ledger> {
    const limit = AbortSignal.timeout(SEALS_LIMIT_MS);
    while (this.#seen < this.#needed && !limit.aborted) await this.#moreSeen(limit);
    return this.#fold.result().ledger;
  }

  async stop(): Promise<void> {
    await this.#following?.stop();
  }

  #moreSeen(limit: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      limit.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  #advance(sequence: number): void {
    this.#seen = sequence;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
