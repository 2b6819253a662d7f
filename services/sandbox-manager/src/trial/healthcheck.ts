/**
 * Owns waiting until a task's own health check passes inside its sandbox. Bounded by the check's own retries; the
 * setup stage's limit ends it earlier. Knows nothing of what is checked.
 */
import { MortiseError } from "@mortise/contracts";
import { type Clock, sleep } from "@mortise/kernel";
import type { Healthcheck } from "@mortise/tasks";
import { type Sandbox, type SandboxUser, shell } from "../backend/types.js";

export interface HealthcheckFacts {
  readonly environment: Readonly<Record<string, string>>;
  readonly user: SandboxUser;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const SHOWN_BYTES = 400;

/** Rejects with MORTISE_SANDBOX_SETUP when the environment is unhealthy. */
export async function waitUntilHealthy(
  sandbox: Pick<Sandbox, "exec">,
  check: Healthcheck,
  { environment, user, clock, signal }: HealthcheckFacts,
): Promise<void> {
  const since = clock.now();
  for (let failures = 0; ; ) {
    const { outcome, stderr } = await sandbox.exec({
      argv: shell(check.command),
      environment,
      user,
      timeoutMs: check.timeoutMs,
      signal,
    });
    if (outcome.kind === "exited" && outcome.code === 0) return;
    const isStarting = clock.now() - since < check.startPeriodMs;
    if (!isStarting) failures++;
    // What did not run at all will not run the next time either.
    if (failures >= check.retries || outcome.kind === "refused" || outcome.kind === "lost") {
      const shown = Buffer.from(stderr.bytes.subarray(-SHOWN_BYTES)).toString("utf8");
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `environment.healthcheck failed ${failures} times, the last with ${JSON.stringify(outcome)} ${shown}`,
      });
    }
    await sleep(isStarting ? check.startIntervalMs : check.intervalMs, clock, signal);
  }
}
