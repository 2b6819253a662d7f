/**
 * Owns why ours and the official verdict may differ: each rule names the traits of a case that set it off. A
 * disagreement without a rule is a defect of one of the two.
 */
import type { Grade } from "../../src/index.js";
import type { OfficialReport } from "./official.js";
import type { SyntheticCase, Trait } from "./synthetic-case.js";

export interface Explanation {
  readonly rule: string;
  readonly why: string;
  /** Any of these sets it off; absent where any case may. */
  readonly traits?: readonly Trait[];
  /** What ours says where this rule applies. */
  readonly ours?: readonly Grade["verdict"][];
  /** Ours passes more tests, fewer, or lists tests the official grader leaves out; unsaid where the verdict differs. */
  readonly passes?: "more" | "fewer" | "listed";
  /** The major version of the official package it is about; any when absent. */
  readonly official?: string;
}

export const EXPLANATIONS: readonly Explanation[] = [
  {
    rule: "marks-once",
    why: "a second start or end mark, or an exit code in the output, was printed by what is tested",
    traits: ["early-end", "second-start", "exit-code-forged"],
    ours: ["invalid(tamper)"],
  },
  {
    rule: "results-in-place",
    why: "results outside the marks are not the run's",
    traits: ["before-start", "behind-end"],
    ours: ["invalid(tamper)", "invalid(infra)"],
  },
  {
    rule: "session-counts",
    why: "passes outside a session's summary, beyond its count or with a failure's reason are forged",
    traits: ["forged-outside", "forged-count", "forged-reason"],
    ours: ["invalid(tamper)", "unresolved"],
  },
  {
    rule: "runner-ends",
    why: "a runner that never reports its end resolves nothing, and its passes are not evidence",
    traits: ["unfinished"],
    ours: ["invalid(tamper)", "unresolved"],
  },
  {
    rule: "cut-log",
    why: "a log without its end mark, or without marks, is no statement about the patch",
    traits: ["no-end", "time-limit", "no-marks"],
    ours: ["invalid(infra)"],
  },
  {
    rule: "machinery",
    why: "no result and a sign of failed machinery, or the harness's own word for it",
    traits: ["infrastructure", "usage-error", "harness-word"],
    ours: ["invalid(infra)"],
  },
  {
    rule: "word-in-output",
    why: "a harness's word in the output does not empty the lists",
    traits: ["word-in-output"],
    ours: ["unresolved"],
  },
  {
    rule: "empty-record",
    why: "a record that expects nothing is refused, not resolved",
    traits: ["empty-list"],
    ours: ["invalid(task)"],
  },
  {
    rule: "lists-kept",
    why: "the lists say what the log shows even where the official report has none",
    traits: [
      "exit-code",
      "no-results",
      "harness-word",
      "no-marks",
      "no-end",
      "time-limit",
      "word-in-output",
      "usage-error",
      "infrastructure",
    ],
    ours: ["unresolved", "invalid(infra)"],
  },
  {
    rule: "any-failure-wins",
    why: "of names that collapse, a failure is not undone by a later pass",
    passes: "fewer",
    traits: ["collapsed", "docstring-collision", "shared-name", "teardown-error"],
    ours: ["unresolved"],
  },
  { rule: "cut-ids", why: "an id cut in brackets is answered by prefix", passes: "more", traits: ["cut-id"] },
  {
    rule: "colours",
    why: "escape sequences are removed for every parser",
    passes: "more",
    traits: ["colour"],
  },
  {
    rule: "verbose-and-xdist",
    why: "verbose lines, with or without a worker, are results where the summary has none",
    passes: "more",
    traits: ["verbose-only", "xdist"],
  },
  {
    rule: "reasons",
    why: "a reason is no part of a name, whatever the status",
    passes: "more",
    traits: ["reasons", "collection-error", "teardown-error"],
  },
  {
    rule: "skips",
    why: "a skipped test of PASS_TO_PASS is no regression; swebench 4 leaves skipped tests out of every list",
    passes: "more",
    official: "4",
  },
  {
    rule: "skips listed",
    why: "a skipped test of FAIL_TO_PASS is not fixed; swebench 4 leaves skipped tests out of every list",
    passes: "listed",
    official: "4",
  },
  {
    rule: "expectations",
    why: "Django's expected failures pass, unexpected successes fail",
    passes: "more",
    traits: ["expectations"],
  },
  {
    rule: "ok-alone",
    why: "a late `ok` counts only alone on its line",
    passes: "fewer",
    traits: ["sentence-ok"],
    ours: ["unresolved"],
  },
  {
    rule: "file-mark",
    why: "the last test of a file of SymPy has the file's mark behind it",
    passes: "more",
    traits: ["file-mark"],
  },
];

/** Names of the rules that explain how a case was graded; undefined when something is left without one. */
export function explanationOf(
  one: SyntheticCase,
  grade: Grade,
  official: { readonly report: OfficialReport; readonly version: string },
): string | undefined {
  const rules = EXPLANATIONS.filter(
    ({ traits, ours, official: version }) =>
      (traits === undefined || traits.some((trait) => one.traits.has(trait))) &&
      (ours === undefined || ours.includes(grade.verdict)) &&
      (version === undefined || official.version.startsWith(`${version}.`)),
  );
  const ofVerdict = rules.find(({ passes }) => passes === undefined);
  if (ofVerdict !== undefined) return ofVerdict.rule;
  const needed = differences(grade, official.report).map(
    (way) => rules.find(({ passes }) => passes === way)?.rule,
  );
  return needed.length === 0 || needed.includes(undefined) ? undefined : needed.join(" and ");
}

/** Which ways the lists differ: tests that only ours passes, tests that only the official grader passes. */
function differences(
  grade: Grade,
  { FAIL_TO_PASS, PASS_TO_PASS }: OfficialReport,
): ("more" | "fewer" | "listed")[] {
  const passed = new Set([...grade.failToPass.passed, ...grade.passToPass.passed]);
  const theirs = new Set([...(FAIL_TO_PASS?.success ?? []), ...(PASS_TO_PASS?.success ?? [])]);
  const isMore = !passed.isSubsetOf(theirs);
  const isFewer = !theirs.isSubsetOf(passed);
  if (!isMore && !isFewer) return ["listed"];
  return [...(isMore ? (["more"] as const) : []), ...(isFewer ? (["fewer"] as const) : [])];
}
