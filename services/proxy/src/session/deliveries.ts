/**
 * Owns what this process saw of each captured reply's way to its harness: being read, delivered, or given up.
 * A reply is held only while somebody reads it; afterwards one word is kept. Does not judge (packages/capture).
 */
import { provenBy } from "@mortise/capture";
import { Delivery, type Turn } from "@mortise/contracts";
import type { Reply } from "./reply.js";

export class Deliveries {
  private readonly open = new Map<string, Reply>();
  private readonly known = new Map<string, Delivery>();
  private readonly proven = new Set<string>();

  /** What a turn of the journal says about an earlier one: an echo proves that its reply arrived. */
  captured(turn: Turn): void {
    const proven = provenBy(turn);
    if (proven !== undefined) this.proven.add(proven);
  }

  /** Follows a captured reply until its connections have ended. */
  watch(reply: Reply): void {
    this.open.set(reply.turn, reply);
  }

  /** How far a turn's reply came; undecided where nothing is known, as of what is being read. */
  of(turn: string): Delivery {
    if (this.proven.has(turn)) return Delivery.DELIVERED;
    this.settle();
    if (this.open.has(turn)) return Delivery.UNDECIDED;
    return this.known.get(turn) ?? Delivery.UNDECIDED;
  }

  /** Whether no reply is being read. */
  get isSettled(): boolean {
    this.settle();
    return this.open.size === 0;
  }

  /** What no journal says: how far replies came that no echo proves delivered. */
  get unproven(): ReadonlyMap<string, Delivery> {
    this.settle();
    return new Map([...this.known].filter(([turn]) => !this.proven.has(turn)));
  }

  /** Takes over what another holder of the session saw. */
  restore(seen: ReadonlyMap<string, Delivery>): void {
    for (const [turn, delivery] of seen) this.known.set(turn, delivery);
  }

  /** Whether somebody is reading the turn's reply now. */
  isBeingRead(turn: string): boolean {
    this.settle();
    return this.open.has(turn);
  }

  private settle(): void {
    for (const [turn, reply] of this.open) {
      if (reply.delivery === Delivery.UNDECIDED) continue;
      this.known.set(turn, reply.delivery);
      this.open.delete(turn);
    }
  }
}
