/**
 * Owns who is next of those that wait for the same thing: runs share it equally, and within a run its groups do,
 * so that neither a large run nor a large group holds the others up. Pure; see start-gate.ts for what is shared.
 *
 * Start-time fair queuing (Goyal, Vin, Cheng 1996), on two levels: a flow's tag is the cost it has been served,
 * the lowest tag is next, and who comes after a pause starts at the tag served last, not at the credit it missed.
 *
 * F1  Of two flows of a level that wait all the time, neither is served more than one largest cost ahead.
 * F2  Within a group the order of arrival is kept.
 */
export interface FlowKey {
  readonly run: string;
  /** Absent: all such work of a run together is one group more. */
  readonly group?: string;
}

interface Entry<T> {
  readonly value: T;
  readonly cost: number;
}

interface Flow<C> {
  tag: number;
  readonly content: C;
}

/** One level: flows by name, each with a tag. */
class Level<C> {
  readonly #flows = new Map<string, Flow<C>>();
  readonly #isEmpty: (content: C) => boolean;
  #now = 0;

  constructor(isEmpty: (content: C) => boolean) {
    this.#isEmpty = isEmpty;
  }

  /** The flow of this name, which waits from now on. */
  enter(name: string, make: () => C): C {
    const known = this.#flows.get(name);
    if (known !== undefined && !this.#isEmpty(known.content)) return known.content;
    const flow = { tag: Math.max(this.#now, known?.tag ?? 0), content: known?.content ?? make() };
    // At the end of the map: of equal tags who came first is next.
    this.#flows.delete(name);
    this.#flows.set(name, flow);
    return flow.content;
  }

  /** The waiting flow with the lowest tag; undefined when none waits. */
  next(): Flow<C> | undefined {
    let best: Flow<C> | undefined;
    for (const flow of this.#flows.values())
      if (!this.#isEmpty(flow.content) && (best === undefined || flow.tag < best.tag)) best = flow;
    return best;
  }

  served(flow: Flow<C>, cost: number): void {
    this.#now = flow.tag;
    flow.tag += cost;
    this.prune();
  }

  /** Forgets flows that wait for nothing and whose tag would not hold them back if they came again. */
  prune(): void {
    for (const [name, flow] of this.#flows)
      if (this.#isEmpty(flow.content) && flow.tag <= this.#now) this.#flows.delete(name);
  }
}

interface RunQueue<T> {
  size: number;
  readonly groups: Level<Entry<T>[]>;
}

export class FairQueue<T> {
  readonly #runs = new Level<RunQueue<T>>(({ size }) => size === 0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds what waits; the result takes it back, and says whether it still waited. `cost` is above 0. */
  push(key: FlowKey, value: T, cost = 1): () => boolean {
    const run = this.#runs.enter(key.run, () => ({
      size: 0,
      groups: new Level<Entry<T>[]>((entries) => entries.length === 0),
    }));
    const group = run.groups.enter(key.group ?? "", () => []);
    const entry = { value, cost };
    group.push(entry);
    run.size++;
    this.#size++;
    return () => {
      const at = group.indexOf(entry);
      if (at < 0) return false;
      group.splice(at, 1);
      run.size--;
      this.#size--;
      return true;
    };
  }

  shift(): T | undefined {
    const run = this.#runs.next();
    const group = run?.content.groups.next();
    const entry = group?.content.shift();
    if (run === undefined || group === undefined || entry === undefined) return undefined;
    run.content.size--;
    this.#size--;
    run.content.groups.served(group, entry.cost);
    this.#runs.served(run, entry.cost);
    return entry.value;
  }
}
