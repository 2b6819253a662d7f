/**
 * Owns reading Karma's plain reporter, which names failures only: `Chrome 100.0 (Linux x86_64) suite test FAILED`.
 * Records of some projects kept the space before the status; names are known with and without it.
 */
import { type LineResult, linewise } from "../../line-parser.js";
import type { ParserDefinition } from "../../types.js";
import { NumberedFailures } from "./numbered.js";

const CHROME = /Chrome\s[\d.]+ \([^)]+\) (.*)FAILED$/;
const BROWSER = /(?:PhantomJS|HeadlessChrome|Chrome(?: Headless)?)\s[^()]*\(Linux[^)]*\)\s(.*)FAILED$/;
/** OpenLayers compares renderings too. */
const RENDERING = /^case\s(.*):\smismatch/;

export const chartJs: ParserDefinition = {
  ...linewise({ name: "chart-js", reads: "Karma in Chart.js", read: (line) => failure(line, CHROME) }),
  printsFailuresOnly: true,
};

export const bpmnJs: ParserDefinition = {
  ...linewise({ name: "bpmn-js", reads: "Karma in bpmn-js", read: (line) => failure(line, BROWSER) }),
  printsFailuresOnly: true,
};

export const openlayers: ParserDefinition = {
  name: "openlayers",
  version: 1,
  reads: "Karma, Mocha and renderings in OpenLayers",
  printsFailuresOnly: true,
  create: (into) => {
    const fail = (name: string) => into.tests.add(name, "failed");
    const numbered = new NumberedFailures(fail, "error");
    return {
      line: (line) => {
        const name = BROWSER.exec(line.trimEnd())?.[1] ?? RENDERING.exec(line)?.[1];
        if (name !== undefined) fail(name.replace(/\s+/g, " ").trim());
        numbered.line(line);
      },
    };
  },
};

function failure(line: string, pattern: RegExp): LineResult {
  const name = line.endsWith("FAILED") ? pattern.exec(line)?.[1] : undefined;
  return name === undefined ? undefined : [[name, name.trim()], "failed"];
}
