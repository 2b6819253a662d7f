/** What a sandbox that could not be had says: something about the task, or about a place and a moment. */
import { create } from "@bufbuild/protobuf";
import { RunOnceResponseSchema } from "@mortise/contracts";
import type { Task } from "@mortise/tasks";
import { expect, test } from "vitest";
import type { Plan } from "../../src/run/plan.js";
import { verify } from "../../src/verification.js";

const task = { verifier: { env: {} } } as unknown as Task;
const plan = { steps: [], request: {}, facts: {} } as unknown as Plan;
const wish = {
  run: "r",
  trial: "t",
  ref: { id: "a", digest: "d" },
  change: { kind: "none" },
  timeoutMs: 1,
} as const;

test.each([
  ["MORTISE_TASK_BUILD", "invalid-task"],
  ["MORTISE_TASK_UNKNOWN", "invalid-task"],
  ["MORTISE_SANDBOX_SEAL_ANSWER", "invalid-task"],
  ["MORTISE_SANDBOX_SETUP", "invalid-infra"],
  ["MORTISE_SANDBOX_LOST", "invalid-infra"],
])("a sandbox refused for %s is %s", async (failureCode, outcome) => {
  const refusal = create(RunOnceResponseSchema, { failureCode, failureReason: "made to fail" });
  const { judged } = await verify(task, wish, plan, async () => refusal, new AbortController().signal);
  expect(judged.outcome).toBe(outcome);
  expect(judged.reason).toBe(`${failureCode}: made to fail`);
});
