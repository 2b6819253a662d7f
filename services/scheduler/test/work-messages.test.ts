/** What a sandbox-manager and a verifier are told of a trial: the same limits, each its own timeouts. */
import { RunConfig } from "@mortise/contracts";
import { expect, test } from "vitest";
import { launchMessage, verifyMessage } from "../src/edge/launch-message.js";
import type { Trial } from "../src/trial/trial.js";

const config = RunConfig.parse({
  run: { id: "r1" },
  policy: { checkpoint: "c" },
  rollout: {
    setupTimeoutMs: 1_000,
    buildTimeoutMs: 20_000,
    verifyTimeoutMs: 3_000,
    agentTimeoutMs: 4_000,
    multipliers: { cpus: 2, memory: 3, setup: 5, agent: 6, verify: 7 },
    limits: { memoryBytes: 1 << 28, pids: 40 },
  },
});
const trial = { id: "t", group: "g", task: { id: "a", digest: "d" }, isEvaluation: true } as unknown as Trial;
const grant = { token: "token", modelAddress: "host:1", model: "policy", listenerKey: "r1.t.code" };

test("limits and multipliers of a run are those of both sandboxes", () => {
  const launch = launchMessage(config, trial, grant);
  const verify = verifyMessage(config, trial);
  expect(verify.limits).toEqual(launch.limits);
  expect(verify.limits).toEqual({ cpus: 0, pids: 40, memoryBytes: 1n << 28n, diskBytes: 0n });
  for (const { overrides } of [launch, verify])
    expect(overrides).toMatchObject({ cpusMultiplier: 2, memoryMultiplier: 3 });
});

test("each has the timeouts of its stages, with their multipliers", () => {
  const launch = launchMessage(config, trial, grant);
  expect(launch).toMatchObject({ setupTimeoutMs: 5_000, buildTimeoutMs: 20_000, agentTimeoutMs: 4_000 });
  expect(launch.overrides).toMatchObject({ agentTimeoutMultiplier: 6 });
  // The verifier multiplies the task's own limit; the run's is the most there is.
  expect(verifyMessage(config, trial)).toMatchObject({
    timeoutMs: 21_000,
    prepareTimeoutMs: 25_000,
    overrides: { verifyTimeoutMultiplier: 7 },
    evaluation: true,
  });
});

test("the listener's key goes with the token to the sandbox-manager, and to nobody else", () => {
  expect(launchMessage(config, trial, grant)).toMatchObject({
    sessionToken: "token",
    listenerKey: "r1.t.code",
  });
  const told = JSON.stringify(verifyMessage(config, trial), (_, value) =>
    typeof value === "bigint" ? `${value}` : value,
  );
  for (const secret of [grant.token, grant.listenerKey]) expect(told).not.toContain(secret);
});
