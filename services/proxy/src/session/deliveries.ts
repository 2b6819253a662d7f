/**
 * Owns what this process saw of each captured reply's way to its harness: being read, delivered, or given up.
 * A reply is held only while somebody reads it; afterwards one word is kept. Does not judge (packages/capture).
 */
import { foldDelivery } from "@mortise/capture";
import { Delivery, type Turn } from "@mortise/contracts";
import type { Reply } from "./reply.js";

export class Deliveries {
  private readonly open = new Map<string, Reply>();
  private readonly known = new Map<string, Delivery>();

  /** Follows a captured reply until its connections have ended. */
  watch(reply: Reply): void {
    this.open.set(reply.turn, reply);
  }

  /** Delivery of each turn: an echo proves it; of what nothing is known it is undecided. */
  of(turns: readonly Turn[]): Map<string, Delivery> {
    this.settle();
    const observed = new Map(this.known);
    for (const turn of this.open.keys()) observed.set(turn, Delivery.UNDECIDED);
    return foldDelivery(turns, observed);
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
