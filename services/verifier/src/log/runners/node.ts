/** Owns the runners of JavaScript: Jest and Vitest by a reporter, Mocha by listening to its runner. */
import type { ChannelReport, ChannelResult } from "../channel.js";
import type { Runner } from "../runner.js";
import { countOf, mounted } from "./files.js";

const DIRECTORY = "/opt/mortise-node";
const EXPORTS = [`export NODE_OPTIONS="--require=${DIRECTORY}/start.cjs\${NODE_OPTIONS:+ $NODE_OPTIONS}"`];

type Words = Readonly<Record<string, string>>;

export const jest: Runner = {
  ...named("jest", ["jest", "jest-json"], "jest-reporter.cjs"),
  hasCanaries: false,
  asLog: (report, parser) =>
    parser === "jest"
      ? lines(
          report,
          { passed: "✓", failed: "✕", skipped: "○" },
          (mark, { titles }) => `${mark} ${titles.at(-1)}`,
        )
      : lines(
          report,
          { passed: "[PASSED]", failed: "[FAILED]" },
          (mark, { titles }) => `${mark} ${titles.join(" ")}`,
        ),
};

export const vitest: Runner = {
  ...named("vitest", ["vitest"], "vitest-reporter.mjs"),
  hasCanaries: false,
  asLog: (report) =>
    lines(
      report,
      { passed: "✓", failed: "×", skipped: "↓" },
      (mark, { file, titles }) => `${mark} ${[file, ...titles].join(" > ")} 0ms`,
    ),
};

export const mocha: Runner = {
  ...named("mocha", ["mocha", "highlightjs"], "mocha-listener.cjs"),
  hasCanaries: true,
  asLog: (report) =>
    lines(report, { passed: "✔", failed: "1)", skipped: "-" }, (mark, { titles }) =>
      titles
        .map((title, at) => `${"  ".repeat(at + 1)}${at === titles.length - 1 ? `${mark} ` : ""}${title}`)
        .join("\n"),
    ),
};

function named(
  name: string,
  parsers: readonly string[],
  file: string,
): Pick<Runner, "name" | "parsers" | "callsIn" | "mount" | "variable" | "exports"> {
  return {
    name,
    parsers: new Set(parsers),
    callsIn: countOf(new RegExp(String.raw`(?:^|[\s/;&|(])_?${name}(?:\.m?js)?(?=\s|$)`, "g")),
    mount: mounted(DIRECTORY, "node", ["start.cjs", file]),
    variable: "NODE_OPTIONS",
    exports: EXPORTS,
  };
}

function lines(
  { results }: ChannelReport,
  words: Words,
  line: (mark: string, result: ChannelResult) => string,
): string[] {
  return results.flatMap((result) => {
    const word = words[result.outcome === "error" ? "failed" : result.outcome];
    return word === undefined || result.titles.length === 0 ? [] : [line(word, result)];
  });
}
