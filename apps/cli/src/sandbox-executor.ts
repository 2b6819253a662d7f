/**
 * Owns executing a task's gold solution, or nothing, the way the verifier grades a change: its plan, channel, canaries,
 * altered tests and restored configuration, in fresh sandboxes of a running sandbox-manager. Does not judge tasks
 * (packages/tasks) and keeps nothing.
 */
import { MortiseError, type SandboxService } from "@mortise/contracts";
import { type Client, retry } from "@mortise/kernel";
import { type Execute, taskDigest } from "@mortise/tasks";
import { type AskOnce, planVerification, type VerificationWish, verify } from "@mortise/verifier";

/** A manager that is away for a moment says nothing about the task. */
const RETRIES = {
  attempts: 15,
  baseMs: 500,
  maxMs: 5_000,
  isRetryable: (error: unknown) => error instanceof MortiseError && error.disposition === "retry",
};

/** Asks whichever manager is there, again while it is away; `signal` ends the waiting. */
export function askManager(manager: () => Client<typeof SandboxService>, signal: AbortSignal): AskOnce {
  return (request, options) => retry(() => manager().runOnce(request, options), { ...RETRIES, signal });
}

/** An executor for `validateTask`. `manager` is asked for at each attempt; `run` names the run in its records. */
export function executeInSandbox(
  manager: () => Client<typeof SandboxService>,
  run: string,
  signal: AbortSignal,
): Execute {
  const ask = askManager(manager, signal);
  return async ({ task, solution, attempt }) => {
    const wish: VerificationWish = {
      run,
      trial: `validate-${task.id}-${solution}-${attempt}`,
      ref: { id: task.id, digest: taskDigest(task) },
      change: { kind: solution === "gold" ? "solution" : "none" },
      timeoutMs: task.verifier.timeoutSec * 1000,
    };
    const plan = planVerification(task, wish);
    const { judged, record } = await verify(task, wish, plan, ask, signal);
    const { outcome, reason } = judged;
    const failed = judged.tests.filter(({ status }) => status !== "passed").map(({ name }) => name);
    const told = {
      failed,
      // The manager gives a sandbox the network its task asks for, or fails.
      isNetworkClosed: task.verifier.network.mode === "no-network",
      protection: {
        channel: plan.facts.runner ?? "none",
        alteredTests: record.counter?.tests.length ?? 0,
      },
    };
    if (outcome === "resolved" || outcome === "unresolved") return { ...told, outcome };
    return { ...told, outcome: "invalid", reason: `${outcome}: ${reason}` };
  };
}
