/** Owns what pytest prints for given tests, with the traits that can be put into it. */
import type { Random } from "./random.js";
import type { SyntheticTest, Trait } from "./synthetic-case.js";

const WORDS = {
  pass: "PASSED",
  fail: "FAILED",
  error: "ERROR",
  skip: "SKIPPED",
  xfail: "XFAIL",
  xpass: "XPASS",
} as const;
const MISLEADING = [
  "PASSED",
  "FAILED - boom",
  "ERRORS are listed below",
  "SKIPPED [3] t.py:12: needs net",
  "PASSED            [100%]",
  "the word PASSED in a sentence",
  "E       assert 'FAILED' == 'PASSED'",
] as const;

export function pytestOutput(tests: readonly SyntheticTest[], traits: Set<Trait>, random: Random): string[] {
  const shown = tests.filter(({ outcome }) => outcome !== "absent");
  const header = [
    rule("test session starts"),
    "platform linux -- Python 3.9.20, pytest-8.3.4, pluggy-1.5.0",
    traits.has("rerun") ? "plugins: rerunfailures-15.0" : "plugins: cov-6.0.0",
    `collected ${shown.length} items`,
    "",
  ];
  const lines = [...header, ...progress(shown, traits), ...noise(traits)];
  if (!traits.has("verbose-only")) lines.push(...summary(shown, traits, random));
  if (!traits.has("unfinished")) lines.push(rule(`${counts(shown, traits)} in 0.1${random.int(10)}s`));
  return traits.has("colour") ? lines.map(coloured) : lines;
}

function rule(text: string): string {
  return ` ${text} `.padStart(40 + text.length / 2, "=").padEnd(80, "=");
}

function progress(shown: readonly SyntheticTest[], traits: ReadonlySet<Trait>): string[] {
  if (traits.has("xdist"))
    return shown.map(({ name, outcome }, at) => `[gw${at % 2}] [ ${10 + at}%] ${word(outcome)} ${name} `);
  if (!traits.has("verbose-only")) return ["t.py ......                                      [100%]", ""];
  return shown.map(({ name, outcome }, at) => `${name} ${word(outcome)}                   [ ${10 + at}%]`);
}

function word(outcome: SyntheticTest["outcome"]): string {
  return outcome === "absent" ? "" : WORDS[outcome];
}

function noise(traits: ReadonlySet<Trait>): string[] {
  return [
    ...(traits.has("misleading-lines") ? MISLEADING : []),
    ...(traits.has("word-in-output") ? [">>>>> Tests Errored"] : []),
    ...(traits.has("progress-mark") ? ["PASSED                                       [100%]"] : []),
  ];
}

/** Passed first, failed last, as `-rA` orders them. */
function summary(shown: readonly SyntheticTest[], traits: ReadonlySet<Trait>, random: Random): string[] {
  const lines = [rule("short test summary info")];
  const reason = () =>
    traits.has("reasons") ? random.pick([" - assert 1 == 2", " - ValueError: a - b", " - boom"]) : "";
  for (const outcome of ["pass", "skip", "xfail", "xpass", "error", "fail"] as const)
    for (const test of shown.filter((candidate) => candidate.outcome === outcome)) {
      if (outcome === "skip" && !traits.has("named-skip")) lines.push("SKIPPED [1] t.py:12: needs net");
      else
        lines.push(
          `${WORDS[outcome]} ${test.name}${outcome === "pass" || outcome === "xpass" ? "" : reason()}`,
        );
    }
  const passed = shown.find(({ outcome }) => outcome === "pass");
  if (traits.has("teardown-error") && passed !== undefined) lines.push(`ERROR ${passed.name} - teardown`);
  const failed = shown.find(({ outcome }) => outcome === "fail");
  if (traits.has("rerun") && failed !== undefined) lines.push(`PASSED ${failed.name}`);
  if (traits.has("collection-error")) lines.push("ERROR tests/t_other.py - ImportError: no module");
  return lines;
}

function counts(shown: readonly SyntheticTest[], traits: ReadonlySet<Trait>): string {
  const count = (outcome: string) => shown.filter((test) => test.outcome === outcome).length;
  const passed = count("pass") + (traits.has("rerun") && count("fail") > 0 ? 1 : 0);
  const parts = [
    [count("fail"), "failed"],
    [passed, "passed"],
    [count("skip"), "skipped"],
    [count("xfail"), "xfailed"],
    [count("error") + (traits.has("teardown-error") ? 1 : 0), "errors"],
  ] as const;
  return (
    parts
      .filter(([number]) => number > 0)
      .map(([number, what]) => `${number} ${what}`)
      .join(", ") || "no tests ran"
  );
}

function coloured(line: string): string {
  const [first = "", ...rest] = line.split(" ");
  return /^(PASSED|FAILED|ERROR|XFAIL|SKIPPED)$/.test(first)
    ? `\u001b[32m${first}\u001b[0m ${rest.join(" ")}`
    : line;
}
