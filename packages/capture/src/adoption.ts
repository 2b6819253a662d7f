/**
 * Owns what later turns reveal about earlier ones: how much of a reply the harness adopted, and that a
 * reply it repeats must have reached it. Derived by folding, never by editing a record (C4).
 */
import { Delivery, type Turn } from "@mortise/contracts";

export interface Adoption {
  /** Sampled ids of each turn that some later turn keeps; absent when no later turn cites it. */
  readonly adopted: ReadonlyMap<string, number>;
  /** Turns whose whole reply a later turn repeats without keeping its ids: the history was rendered whole. */
  readonly echoed: ReadonlySet<string>;
  /** Turns cited as parent, each list oldest first. */
  readonly children: ReadonlyMap<string, readonly Turn[]>;
}

/** Folds turns in the order of their index. Where several children differ, the longest adoption counts. */
export function foldAdoption(turns: readonly Turn[]): Adoption {
  const contextLengths = new Map<string, number>();
  const adopted = new Map<string, number>();
  const echoed = new Set<string>();
  const children = new Map<string, Turn[]>();
  for (const turn of turns) {
    contextLengths.set(turn.turn, turn.prefixLength + turn.suffixIds.byteLength / 4);
    if (turn.parent === "") {
      if (turn.follows !== "" && !turn.flags.includes("adopted-partial")) echoed.add(turn.follows);
      continue;
    }
    const kept = turn.prefixLength - (contextLengths.get(turn.parent) ?? 0);
    adopted.set(turn.parent, Math.max(kept, adopted.get(turn.parent) ?? 0));
    const known = children.get(turn.parent);
    if (known) known.push(turn);
    else children.set(turn.parent, [turn]);
  }
  return { adopted, echoed, children };
}

/** The turn whose reply a later one repeats, whole or in part: it must have reached the harness. */
export function provenBy({ parent, follows, flags }: Turn): string | undefined {
  if (parent !== "") return parent;
  return follows !== "" && !flags.includes("adopted-partial") ? follows : undefined;
}

/** Delivery of each turn: what the proxy observed, overruled by an echo, undecided where nothing is known. */
export function foldDelivery(
  turns: readonly Turn[],
  observed: ReadonlyMap<string, Delivery>,
): Map<string, Delivery> {
  const proven = new Set(turns.map(provenBy));
  return new Map(
    turns.map(({ turn }) => [
      turn,
      proven.has(turn) ? Delivery.DELIVERED : (observed.get(turn) ?? Delivery.UNDECIDED),
    ]),
  );
}
