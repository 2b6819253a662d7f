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

  /** @throws MortiseError MORTISE_CAPTURE_LEDGER when the fold does not balance. */
  async ledger(): Promise<Ledger> {
    while (this.#seen < this.#needed) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.#fold.result().ledger;
  }

  async stop(): Promise<void> {
    await this.#following?.stop();
  }

  #advance(sequence: number): void {
    this.#seen = sequence;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
