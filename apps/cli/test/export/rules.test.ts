/** Which trials an export takes, what counts as a secret, and what the ATIF schema refuses. */
import type { TrialFact } from "@mortise/evaluation";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ATIF_VERSION, AtifTrajectory } from "../../src/export/atif-schema.js";
import { secretIn } from "../../src/export/secrets.js";
import { selectTrials } from "../../src/export/selection.js";

const fact = (trial: string, task: string, verdict: TrialFact["verdict"]): TrialFact => ({
  trial,
  set: "training",
  group: "g",
  slot: 0,
  task,
  termination: "completed",
  verdict,
  retry: 0,
  sampledTokens: 1,
  turns: 1,
  stages: [],
  score: undefined,
});

describe("selection", () => {
  const verdicts = ["resolved", "unresolved", "invalid(infra)", undefined] as const;
  const arbFacts = fc
    .array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.constantFrom(...verdicts)), { maxLength: 30 })
    .map((trials) => trials.map(([task, verdict], at) => fact(`t${at}`, `task${task}`, verdict)));

  test("takes at most k of a task, as many as there are, the same in any order, and k of them among k + 1", () => {
    fc.assert(
      fc.property(arbFacts, fc.integer({ min: 1, max: 4 }), (facts, atMost) => {
        const taken = selectTrials(facts, { only: "resolved", atMost });
        expect(selectTrials([...facts].reverse(), { only: "resolved", atMost })).toEqual(taken);
        expect(taken.every(({ verdict }) => verdict === "resolved")).toBe(true);
        for (const task of new Set(facts.map((one) => one.task))) {
          const all = facts.filter((one) => one.task === task && one.verdict === "resolved").length;
          expect(taken.filter((one) => one.task === task)).toHaveLength(Math.min(all, atMost));
        }
        expect(selectTrials(facts, { only: "resolved", atMost: atMost + 1 })).toEqual(
          expect.arrayContaining(taken),
        );
      }),
    );
  });

  test("by verdict and set", () => {
    const facts = verdicts.map((verdict, at) => fact(`t${at}`, "a", verdict));
    const trials = (only: Parameters<typeof selectTrials>[1]["only"]) =>
      selectTrials(facts, { only }).map(({ trial }) => trial);
    expect(trials("all")).toEqual(["t0", "t1", "t2", "t3"]);
    expect(trials("counted")).toEqual(["t0", "t1"]);
    expect(trials("unresolved")).toEqual(["t1"]);
    expect(selectTrials(facts, { only: "all", set: "after" })).toEqual([]);
  });
});

describe("secrets", () => {
  const mixed = "aB3-".repeat(4) + "Zx9_".repeat(4);
  test.each([
    ["a key of a model provider", `key sk-ant-${mixed}`],
    ["a token of a code host", `ghp_${"aB3dE".repeat(8).slice(0, 36)}`],
    ["an access key of a cloud", "AKIAABCDEFGHIJKLMNOP"],
    ["a password in an address", "https://me:secret@example.org/repo.git"],
    ["a private key", `-----BEGIN RSA PRIVATE KEY-----\n${"MIIE".repeat(16)}`],
  ])("finds %s", (kind, text) => {
    expect(secretIn(`before ${text} after`)).toBe(kind);
  });

  test.each([
    ["a digest", "0123456789abcdef".repeat(8)],
    ["a line of dashes", "-".repeat(400)],
    ["a long word of one letter", "a1B".repeat(200)],
    ["an address without a password", "https://example.org:8080/a@b"],
    ["a heading about keys", "-----BEGIN PRIVATE KEY----- is how one begins"],
  ])("leaves %s", (_, text) => {
    expect(secretIn(text)).toBeUndefined();
  });
});

describe("the ATIF schema", () => {
  const valid = () => ({
    schema_version: ATIF_VERSION,
    agent: { name: "pi", version: "1" },
    steps: [
      { step_id: 1, source: "user", message: "Repair." },
      {
        step_id: 2,
        source: "agent",
        message: "",
        tool_calls: [{ tool_call_id: "c", function_name: "bash", arguments: {} }],
        observation: { results: [{ source_call_id: "c", content: "ok" }] },
        metrics: { prompt_tokens: 1, completion_token_ids: [1], logprobs: [-1] },
      },
    ],
  });
  // biome-ignore lint/suspicious/noExplicitAny: broken on purpose
  const broken = (change: (document: any) => void) => {
    const document = structuredClone(valid());
    change(document);
    return AtifTrajectory.safeParse(document).success;
  };

  test("takes a whole document", () => expect(broken(() => {})).toBe(true));

  test.each([
    ["an unknown field of the document", (d) => Object.assign(d, { reward: 1 })],
    ["an unknown field of a step", (d) => Object.assign(d.steps[0], { role: "user" })],
    ["an unknown field of a call", (d) => Object.assign(d.steps[1].tool_calls[0], { id: "c" })],
    ["an unknown field of metrics", (d) => Object.assign(d.steps[1].metrics, { mask: [1] })],
    [
      "an unknown field of a result",
      (d) => Object.assign(d.steps[1].observation.results[0], { error: true }),
    ],
    ["an unknown field of the agent", (d) => Object.assign(d.agent, { harness: "pi" })],
    ["another version", (d) => Object.assign(d, { schema_version: "ATIF-v1.6" })],
    ["no steps", (d) => Object.assign(d, { steps: [] })],
    ["steps out of order", (d) => Object.assign(d.steps[1], { step_id: 3 })],
    ["metrics of a user", (d) => Object.assign(d.steps[0], { metrics: {} })],
    [
      "embedded trajectories of one id",
      (d) => {
        const { schema_version, agent, steps } = valid();
        const embedded = { schema_version, agent, steps, trajectory_id: "sub" };
        d.subagent_trajectories = [embedded, embedded];
      },
    ],
    ["metrics of a step without a model call", (d) => Object.assign(d.steps[1], { llm_call_count: 0 })],
    ["a result of another step's call", (d) => Object.assign(d.steps[1], { tool_calls: [] })],
    ["arguments that are text", (d) => Object.assign(d.steps[1].tool_calls[0], { arguments: "{}" })],
    ["a missing log-probability", (d) => Object.assign(d.steps[1].metrics, { logprobs: [null] })],
    [
      "a reference to nothing",
      (d) =>
        Object.assign(d.steps[1].observation.results[0], {
          subagent_trajectory_ref: [{ trajectory_id: "x" }],
        }),
    ],
    // biome-ignore lint/suspicious/noExplicitAny: broken on purpose
  ] as [string, (document: any) => void][])("refuses %s", (_, change) => {
    expect(broken(change)).toBe(false);
  });
});
