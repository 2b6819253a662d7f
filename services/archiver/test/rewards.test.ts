/** Where messages of REWARDS go: a verdict's evidence is a blob, a later judgement has a table of its own. */
import { create } from "@bufbuild/protobuf";
import { Outcome, RegradeSchema, subject, type Verdict, VerdictSchema } from "@mortise/contracts";
import { expect, test } from "vitest";
import { SOURCES } from "../src/tables/sources.js";

const rewards = SOURCES.find(({ stream }) => stream === "REWARDS")!;

test("a verdict keeps its evidence by reference", () => {
  const value = new TextEncoder().encode("evidence");
  const evidence = { place: { case: "inline" as const, value }, sha256: "", size: 8n };
  const verdict = create(VerdictSchema, { run: "r", trial: "t", outcome: Outcome.RESOLVED, evidence });
  const placed = rewards.place(verdict, 3n)!;
  expect(placed.row.table.name).toBe("verdicts");
  expect(placed.contents).toEqual([verdict.evidence]);
  const kept = placed.row.message as Verdict;
  expect(kept.evidence?.place).toEqual({ case: "object", value: expect.stringMatching(/^[0-9a-f]{64}$/) });
});

test("a regrade is told from a verdict by its subject, and stands in its own table", () => {
  expect(rewards.schema(subject.reward("r", "t"))).toBe(VerdictSchema);
  expect(rewards.schema(subject.regrade("r", "t"))).toBe(RegradeSchema);
  const judged = { outcome: Outcome.UNRESOLVED, reward: 0 };
  const regrade = create(RegradeSchema, { run: "r", trial: "t", earlierOutcome: Outcome.RESOLVED, judged });
  const { row, run } = rewards.place(regrade, 4n)!;
  expect(run).toBe("r");
  const cells = row.table.columns.map(({ name, of }) => [name, of(regrade as never, 4n)]);
  expect(Object.fromEntries(cells)).toMatchObject({
    trial: "t",
    earlier_outcome: "RESOLVED",
    outcome: "UNRESOLVED",
    reward: 0,
  });
});
