/**
 * Owns the rules that drop tasks, and counting what each dropped. Pure: what a rule needs is given to it. Does not
 * read files (sources are read by the caller) or draw tasks for a run.
 *
 * S1  A rule that needs what a task does not say drops it, and counts it apart: unknown is not inside a range.
 * S2  What is chosen depends on the tasks and the seed, never on their order.
 */
import { createHash } from "node:crypto";
import type { IndexedTask } from "./indexed-task.js";

export interface Rule {
  readonly name: string;
  /** The tasks that stay, in the order they came. */
  apply(tasks: readonly IndexedTask[]): { readonly kept: readonly IndexedTask[]; readonly unknown: number };
}

export interface FunnelStep {
  readonly rule: string;
  /** Including those in `unknown`. */
  readonly dropped: number;
  /** Dropped for want of the value the rule needs. */
  readonly unknown: number;
  readonly left: number;
}

export interface Selection {
  readonly tasks: readonly IndexedTask[];
  readonly funnel: readonly FunnelStep[];
}

/** Bounds that belong to the range; an absent one is open. */
export interface Range {
  readonly min?: number;
  readonly max?: number;
}

/** Applies rules one after the other. */
export function select(tasks: readonly IndexedTask[], rules: readonly Rule[]): Selection {
  let left = tasks;
  const funnel = rules.map((rule): FunnelStep => {
    const before = left.length;
    const { kept, unknown } = rule.apply(left);
    left = kept;
    return { rule: rule.name, dropped: before - kept.length, unknown, left: kept.length };
  });
  return { tasks: left, funnel };
}

/** Of tasks with one directory name or one instance, the first stays. */
export function withoutRepeats(): Rule {
  return {
    name: "repeated",
    apply(tasks) {
      const seen = new Set<string>();
      const kept = tasks.filter(({ id, instance }) => {
        const names = [`task ${id}`, `instance ${instance.toLowerCase()}`];
        if (names.some((name) => seen.has(name))) return false;
        for (const name of names) seen.add(name);
        return true;
      });
      return { kept, unknown: 0 };
    },
  };
}

/** Names of tasks, instances or repositories (`owner/name`), whatever their case. */
export function without(name: string, names: ReadonlySet<string>): Rule {
  return keepIf(name, ({ id, instance, repository }) => {
    const own = [id, instance, repository ?? ""].map((text) => text.toLowerCase());
    return !own.some((text) => names.has(text));
  });
}

export function ofLanguages(languages: ReadonlySet<string>): Rule {
  return keepIf(`language ${[...languages].join(", ")}`, ({ language }) =>
    language === undefined ? undefined : languages.has(language.toLowerCase()),
  );
}

/** Bounds in ISO 8601; `from` belongs to the range, `before` does not. */
export function createdBetween(from: string | undefined, before: string | undefined): Rule {
  const name = [
    "created",
    ...(from === undefined ? [] : [`from ${from}`]),
    ...(before === undefined ? [] : [`before ${before}`]),
  ];
  return keepIf(name.join(" "), ({ createdAt }) => {
    const at = createdAt === undefined ? Number.NaN : Date.parse(createdAt);
    if (Number.isNaN(at)) return undefined;
    return (
      (from === undefined || at >= Date.parse(from)) && (before === undefined || at < Date.parse(before))
    );
  });
}

export function within(name: string, range: Range, measure: (task: IndexedTask) => number | undefined): Rule {
  return keepIf(`${name} ${shown(range)}`, (task) => {
    const value = measure(task);
    return value === undefined
      ? undefined
      : value >= (range.min ?? -Infinity) && value <= (range.max ?? Infinity);
  });
}

/** What is kept of each repository is chosen by the seed. Tasks of an unknown repository are unknown (S1). */
export function atMostPerRepository(limit: number, seed: number): Rule {
  return {
    name: `at most ${limit} a repository`,
    apply(tasks) {
      const counts = new Map<string, number>();
      const chosen = new Set<IndexedTask>();
      for (const task of byDraw(tasks, seed, "repository")) {
        const repository = task.repository?.toLowerCase();
        const count = repository === undefined ? limit : (counts.get(repository) ?? 0);
        if (count >= limit) continue;
        counts.set(repository!, count + 1);
        chosen.add(task);
      }
      const kept = tasks.filter((task) => chosen.has(task));
      return { kept, unknown: tasks.filter(({ repository }) => repository === undefined).length };
    },
  };
}

/**
 * At most so many, drawn without replacement in proportion to their weights: the smallest of the exponential keys
 * −ln(u)/weight (Efraimidis and Spirakis, 2006), with u from the seed and the task's name.
 */
export function sampleOf(size: number, seed: number): Rule {
  return {
    name: `sample of ${size}`,
    apply(tasks) {
      const chosen = new Set(byDraw(tasks, seed, "sample").slice(0, size));
      return { kept: tasks.filter((task) => chosen.has(task)), unknown: 0 };
    },
  };
}

function byDraw(tasks: readonly IndexedTask[], seed: number, purpose: string): IndexedTask[] {
  const keys = new Map(
    tasks.map((task) => [task, -Math.log(uniform(`${seed}:${purpose}:${task.id}`)) / (task.weight ?? 1)]),
  );
  return tasks.toSorted((a, b) => keys.get(a)! - keys.get(b)! || (a.id < b.id ? -1 : 1));
}

/** In (0, 1), the same for the same text on every machine. */
function uniform(text: string): number {
  const bits = createHash("sha256").update(text).digest().readUIntBE(0, 6);
  return (bits + 0.5) / 2 ** 48;
}

function keepIf(name: string, test: (task: IndexedTask) => boolean | undefined): Rule {
  return {
    name,
    apply(tasks) {
      const verdicts = tasks.map(test);
      return {
        kept: tasks.filter((_, index) => verdicts[index] === true),
        unknown: verdicts.filter((verdict) => verdict === undefined).length,
      };
    },
  };
}

function shown({ min, max }: Range): string {
  return `${min ?? ""}..${max ?? ""}`;
}
