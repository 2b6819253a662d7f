/** Ours and the official parsers on the short logs of every runner: equal maps, except where a log says why not. */
import { describe, expect, test } from "vitest";
import { mapOf } from "../logs.js";
import { RUNNER_LOGS } from "../runner-logs.js";
import { hasSwebench, interpreters, parseOfficially } from "./official.js";

const WORDS: Readonly<Record<string, string>> = {
  passed: "PASSED",
  failed: "FAILED",
  error: "FAILED",
  skipped: "SKIPPED",
};

for (const python of interpreters()) {
  const isPresent = hasSwebench(python);
  describe.skipIf(!isPresent)(`parsers of ${python}`, () => {
    test("runners", ({ skip }) => {
      const logs = RUNNER_LOGS.filter(({ official }) => official !== undefined);
      const maps = parseOfficially(
        python,
        logs.map(({ official, log, version = "1.0", instance = "o__r-1" }) => ({
          parser: official!,
          log,
          spec: { instance_id: instance, version },
        })),
      );
      if (maps[0]?.error?.startsWith("ImportError")) skip("this version has no parsers by name");
      logs.forEach(({ parser, log, differs }, at) => {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is removed
        const lines = log.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "").split("\n");
        const ours = Object.entries(mapOf(parser, lines)).map(([name, status]) => [name, WORDS[status]]);
        if (differs === undefined) expect(Object.fromEntries(ours), parser).toEqual(maps[at]);
        else expect(Object.fromEntries(ours), parser).not.toEqual(maps[at]);
      });
    });
  });
}
