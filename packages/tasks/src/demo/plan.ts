/**
 * Owns which demo tasks exist: every (target function, bug, names) whose bug a hidden test catches and whose
 * repair is one unambiguous edit, and their division into training and held-out tasks.
 * Does not write directories (write-task.ts) and does not start processes: bugs are tried in the hidden test
 * runner's own realm, once per bug, because renaming locals changes no result.
 */
import { createRequire } from "node:module";
import { MortiseError } from "@mortise/contracts";
import { compact } from "./compact.js";
import { type HiddenCase, type HiddenSuite, TARGETS, type Target } from "./hidden-cases.js";
import { locateFunction, readLibrary, type SourceTree } from "./library.js";
import { applyMutation, type Mutation, mutationsOf } from "./mutations.js";
import { seededRandom, shuffled } from "./random.js";
import { type Renaming, renameLocals, renameWords, renamingsOf } from "./surfaces.js";

/** An edit as a policy writes it: both sides in canonical spacing, `old` exactly once in the function shown. */
export interface Edit {
  readonly old: string;
  readonly new: string;
}

export interface DemoTask {
  /** Depends on function, bug and names only, so it is stable over seeds. */
  readonly id: string;
  readonly split: "train" | "heldout";
  /** The bug's kind, `<function>.<mutation kind>.<ordinal>`: equal for all surfaces of one bug. */
  readonly context: string;
  readonly file: string;
  readonly function: string;
  /** The sentence that asks for the repair, in this surface's names. */
  readonly sentence: string;
  /** The user message the mini harness sends: `# sentence`, a line break, the function in canonical spacing. */
  readonly prompt: string;
  /** The whole file before and after the gold patch. */
  readonly buggyFile: string;
  readonly goldFile: string;
  readonly gold: Edit;
  /** Edits that apply but do not repair, in an order shared by all surfaces of the context. */
  readonly wrongEdits: readonly Edit[];
  readonly cases: readonly HiddenCase[];
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
}

export interface DemoPlanOptions {
  readonly seed: number;
  /** Number of training tasks; default 768. */
  readonly train?: number;
  /** Number of held-out tasks; default 128. */
  readonly heldOut?: number;
}

/** A target function cut out of its file, so that variants are made by concatenation. */
interface Site {
  readonly target: Target;
  readonly before: string;
  readonly source: string;
  readonly after: string;
}

interface Context {
  readonly key: string;
  readonly site: Site;
  readonly mutationIndex: number;
  /** Indices into the buggy function's mutations of the edits that do not repair it. */
  readonly wrongIndices: readonly number[];
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
}

type RunCases = (sources: SourceTree, suite: HiddenSuite) => { name: string; status: "passed" | "failed" }[];
const { runCases } = createRequire(import.meta.url)("../../demo/run.cjs") as { runCases: RunCases };

let family: readonly DemoTask[] | undefined;

/** Every task the family gives, in a fixed order, with distinct prompts; all marked `train`. */
export function demoFamily(): readonly DemoTask[] {
  // Made once: it depends on the package's own files only, and takes a second.
  family ??= makeFamily();
  return family;
}

function makeFamily(): DemoTask[] {
  const library = modulesOf(readLibrary());
  const byPrompt = new Map<string, DemoTask>();
  for (const target of TARGETS) {
    const site = siteOf(library, target);
    const renamings = renamingsOf(site.source);
    for (const context of contextsOf(library, site)) {
      for (const renaming of renamings) {
        const task = surfaceOf(context, renaming);
        if (task !== undefined && !byPrompt.has(task.prompt)) byPrompt.set(task.prompt, task);
      }
    }
  }
  return [...byPrompt.values()];
}

/**
 * Chooses training and held-out tasks: disjoint by prompt, both with the same share of each function.
 * Held-out prompts are new surfaces of known kinds of bug, not new kinds.
 */
export function planDemoTasks(options: DemoPlanOptions): { train: DemoTask[]; heldOut: DemoTask[] } {
  const { seed, train = 768, heldOut = 128 } = options;
  const available = demoFamily();
  if (train < 1 || heldOut < 0 || train + heldOut > available.length) {
    throw new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: `train + heldOut is ${train} + ${heldOut}; the bundled family has ${available.length} distinct tasks.`,
      fix: `Ask for at least 1 training task and at most ${available.length} in all.`,
    });
  }
  const random = seededRandom(seed, "plan");
  const pools = TARGETS.map((target) =>
    shuffled(
      available.filter((task) => task.function === target.function),
      random,
    ),
  );
  const chosen = balanced(pools, train + heldOut);
  const ranked = chosen.flatMap((pool) =>
    pool.map((task, rank) => ({ task, rank: (rank + 0.5) / pool.length })),
  );
  // Ordered by relative rank in its pool, so any prefix has each function in proportion.
  ranked.sort((a, b) => a.rank - b.rank);
  const ordered = ranked.map(({ task }) => task);
  return {
    heldOut: ordered.slice(0, heldOut).map((task) => ({ ...task, split: "heldout" as const })),
    train: shuffled(ordered.slice(heldOut), random),
  };
}

/** The bugs of one target which hidden tests catch. */
function contextsOf(library: SourceTree, site: Site): Context[] {
  const { function: name, suite } = site.target;
  const run = (source: string) => runCases({ ...library, [suite.entry]: fileWith(site, source) }, suite);
  const names = (results: ReturnType<RunCases>, status: "passed" | "failed") =>
    results.filter((result) => result.status === status).map((result) => result.name);
  const ordinals = new Map<string, number>();
  return mutationsOf(site.source).flatMap((mutation, mutationIndex) => {
    const buggy = applyMutation(site.source, mutation);
    const results = run(buggy);
    const failToPass = names(results, "failed");
    if (failToPass.length === 0) return [];
    const ordinal = (ordinals.get(mutation.kind) ?? 0) + 1;
    ordinals.set(mutation.kind, ordinal);
    const wrongIndices = mutationsOf(buggy).flatMap((edit, index) =>
      names(run(applyMutation(buggy, edit)), "failed").length > 0 ? [index] : [],
    );
    const key = `${name}.${mutation.kind}.${ordinal}`;
    return [{ key, site, mutationIndex, wrongIndices, failToPass, passToPass: names(results, "passed") }];
  });
}

function surfaceOf(context: Context, renaming: Renaming): DemoTask | undefined {
  const { site, key, mutationIndex, wrongIndices, failToPass, passToPass } = context;
  const { target } = site;
  const correct = renameLocals(site.source, renaming);
  const bug = mutationsOf(correct)[mutationIndex] as Mutation;
  const buggy = applyMutation(correct, bug);
  const shown = compact(buggy.slice(buggy.indexOf("(")));
  const gold = { old: compact(bug.after), new: compact(bug.before) };
  if (!occursOnce(shown, gold.old)) return undefined;
  const alternatives = mutationsOf(buggy);
  const wrongEdits = wrongIndices
    .map((index) => alternatives[index] as Mutation)
    .map((edit) => ({ old: compact(edit.before), new: compact(edit.after) }))
    .filter((edit) => occursOnce(shown, edit.old));
  const sentence = renameWords(target.sentence, renaming);
  return {
    id: ["tally", ...key.split("."), ...Object.values(renaming)].join("-"),
    split: "train",
    context: key,
    file: target.suite.entry,
    function: target.function,
    sentence,
    prompt: `# ${sentence}\n${shown}`,
    buggyFile: fileWith(site, buggy),
    goldFile: fileWith(site, correct),
    gold,
    wrongEdits,
    cases: target.suite.cases,
    failToPass,
    passToPass,
  };
}

/** The part of a repository that hidden tests load. */
function modulesOf(library: SourceTree): SourceTree {
  return Object.fromEntries(Object.entries(library).filter(([path]) => path.startsWith("src/")));
}

function siteOf(library: SourceTree, target: Target): Site {
  const text = library[target.suite.entry] as string;
  const { start, end } = locateFunction(text, target.function);
  return { target, before: text.slice(0, start), source: text.slice(start, end), after: text.slice(end) };
}

function fileWith(site: Site, source: string): string {
  return site.before + source + site.after;
}

function occursOnce(text: string, part: string): boolean {
  const first = text.indexOf(part);
  return first >= 0 && text.indexOf(part, first + 1) < 0;
}

/** Takes `count` tasks with equal shares per pool, as far as the small pools reach. */
function balanced<T>(pools: readonly (readonly T[])[], count: number): T[][] {
  const taken: T[][] = pools.map(() => []);
  for (let left = count; left > 0; ) {
    for (const [index, pool] of pools.entries()) {
      const own = taken[index] as T[];
      if (left > 0 && own.length < pool.length) {
        own.push(pool[own.length] as T);
        left--;
      }
    }
  }
  return taken;
}
