/**
 * The bundled harness through some of the standard cases: a real nats-server, the real proxy, real sockets. Needs
 * nothing beyond the repository.
 */
import { harnessNamed } from "@mortise/harnesses";
import { expect, test } from "vitest";
import { runConformance } from "../../src/conformance/conformance.js";

const CASES = ["several-tools", "overflow", "overloaded", "cut-behind-call"];

test("mini passes, and every token it made the engine sample is accounted for", {
  timeout: 900_000,
}, async () => {
  const report = await runConformance({
    adapter: harnessNamed("mini"),
    wireApis: [],
    cases: CASES,
    keeps: false,
    signal: new AbortController().signal,
    note: () => {},
    onResult: () => {},
  });
  expect(report.results.map(({ case: name, reasons }) => [name, ...reasons])).toEqual(
    CASES.map((name) => [name]),
  );
  const [several, overflow, , cut] = report.results;
  expect(several).toMatchObject({ turns: 4, alignment: { root: 1, extends: 3 } });
  expect(several!.tokens.trainable).toBe(several!.tokens.sampled);
  // Refused before anything was sampled.
  expect(overflow).toMatchObject({ turns: 0, tokens: { sampled: 0 } });
  // The reply that was cut is one turn, not two: the second try got the same one.
  expect(cut).toMatchObject({ turns: 3, alignment: { root: 1, extends: 2 } });
});

test("an unknown case is refused by name", async () => {
  const options = {
    adapter: harnessNamed("mini"),
    wireApis: [],
    keeps: false,
    signal: new AbortController().signal,
    note: () => {},
    onResult: () => {},
  };
  await expect(runConformance({ ...options, cases: ["many-tools"] })).rejects.toMatchObject({
    code: "MORTISE_OPERATOR_USAGE",
    detail: { field: "--case" },
  });
});
