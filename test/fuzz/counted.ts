/**
 * Owns counting: how often code looks at the parts of a value, and how much code runs. Both are the same on any
 * machine, so a bound on them can be asserted where a time cannot.
 */
import { type Profiler, Session } from "node:inspector";

export interface Counted {
  readonly view: unknown;
  /** Properties read and listed so far. */
  readonly reads: number;
}

/** A view of a JSON value that counts every look at a property. */
export function countReads(value: unknown): Counted {
  let reads = 0;
  const views = new WeakMap<object, object>();
  const viewOf = (inner: unknown): unknown => {
    if (typeof inner !== "object" || inner === null) return inner;
    const known = views.get(inner);
    if (known) return known;
    const view = new Proxy(inner, {
      get(target, key) {
        reads++;
        return viewOf(Reflect.get(target, key));
      },
      has(target, key) {
        reads++;
        return Reflect.has(target, key);
      },
      ownKeys(target) {
        reads++;
        return Reflect.ownKeys(target);
      },
      getOwnPropertyDescriptor(target, key) {
        reads++;
        return Reflect.getOwnPropertyDescriptor(target, key);
      },
    });
    views.set(inner, view);
    return view;
  };
  return {
    view: viewOf(value),
    get reads() {
      return reads;
    },
  };
}

/** Values in a JSON value, itself included. Iterative: the value may be deeper than the stack. */
export function sizeOf(value: unknown): number {
  let size = 0;
  const left = [value];
  while (left.length > 0) {
    size++;
    const next = left.pop();
    if (typeof next === "object" && next !== null) for (const inner of Object.values(next)) left.push(inner);
  }
  return size;
}

/**
 * Blocks of JavaScript that ran: V8's own counts, over all scripts loaded. What runs natively (regular
 * expressions, hashing) counts as nothing.
 */
export class StepCounter {
  private readonly session = new Session();

  constructor() {
    this.session.connect();
    this.session.post("Profiler.enable");
    this.session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Steps of `work`, which must be synchronous. */
  count(work: () => void): number {
    this.take();
    work();
    return this.take();
  }

  close(): void {
    this.session.disconnect();
  }

  private take(): number {
    let steps = 0;
    this.session.post("Profiler.takePreciseCoverage", (error, { result }) => {
      if (error) throw error;
      steps = sum(result);
    });
    return steps;
  }
}

function sum(scripts: readonly Profiler.ScriptCoverage[]): number {
  let total = 0;
  for (const { functions } of scripts)
    for (const { ranges } of functions) for (const { count } of ranges) total += count;
  return total;
}
