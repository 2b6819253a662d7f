/**
 * Owns the answers to `SandboxService`: each question to the part that knows. Decides nothing.
 */
import { MortiseError, SandboxService } from "@mortise/contracts";
import { implement, type ServiceBinding } from "@mortise/kernel";
import type { ExecResult, SandboxBackend } from "./backend/types.js";
import { healthWarnings } from "./host-health.js";
import type { RunOnce } from "./run-once.js";
import type { Prewarmer } from "./shelf/prewarmer.js";
import type { TemplateShelf } from "./shelf/templates.js";
import type { KeptSandboxes } from "./trial/kept.js";
import type { ManagerContext } from "./trial/manager-context.js";
import type { Trials } from "./trial/trials.js";

export interface SandboxServiceParts {
  readonly trials: Trials;
  readonly runOnce: RunOnce;
  readonly prewarmer: Prewarmer;
  readonly kept: KeptSandboxes;
  readonly templates: TemplateShelf;
  readonly backend: SandboxBackend;
  readonly context: ManagerContext;
}

/** A question has an answer within 30 s (DESIGN §3); this leaves time to make the sandbox. */
const MAX_KEPT_COMMAND_MS = 25_000;

export function bindingOf(parts: SandboxServiceParts): ServiceBinding {
  const { trials, runOnce, prewarmer, kept, backend, templates } = parts;
  return implement(SandboxService, {
    startAgent: async ({ run, trial, lease }) => {
      trials.startAgent(run, trial, lease);
      return { started: true };
    },
    cancelTrial: async ({ run, trial }) => ({ cancelled: trials.cancel(run, trial) }),
    runOnce: (request, { signal }) => runOnce.handle(request, signal),
    getSandboxStatus: async () => {
      const health = parts.context.metrics.health();
      const { cgroups, percpuBytes, ...rest } = health;
      return {
        backend: backend.name,
        insecure: backend.isInsecure,
        ...trials.counts(),
        warnings: [
          ...(backend.isInsecure ? [`the ${backend.name} backend isolates nothing: development only`] : []),
          ...healthWarnings(health),
        ],
        health: {
          ...rest,
          ...(cgroups === undefined ? {} : { cgroups: BigInt(cgroups) }),
          ...(percpuBytes === undefined ? {} : { percpuBytes: BigInt(percpuBytes) }),
        },
        templates: templates.size,
        templateBytes: BigInt(templates.bytes),
        kept: kept.list().length,
      };
    },
    prewarm: async (request) => ({ accepted: prewarmer.want(request) }),
    listKept: async () => ({
      sandboxes: kept.list().map(({ run, trial, task, termination, expiresAt }) => ({
        run,
        trial,
        task: task.task.id,
        termination,
        expiresAtMs: BigInt(expiresAt),
      })),
    }),
    execKept: async ({ run, trial, argv, user, cwd, timeoutMs }, { signal }) => {
      const [program, ...parameters] = argv;
      if (program === undefined || !["", "agent", "root"].includes(user))
        throw new MortiseError({
          code: "MORTISE_SANDBOX_SETUP",
          message: program === undefined ? "argv is empty" : `user is ${JSON.stringify(user)}`,
          fix: 'Give a command, and "agent" or "root" as the user.',
        });
      const result = await kept.exec(
        { run, trial },
        {
          argv: [program, ...parameters],
          user: user === "root" ? "root" : "agent",
          ...(cwd === "" ? {} : { cwd }),
          timeoutMs: Math.min(timeoutMs || MAX_KEPT_COMMAND_MS, MAX_KEPT_COMMAND_MS),
          signal,
        },
      );
      return answerOf(result);
    },
    releaseKept: async ({ run, trial }) => ({ released: await kept.release({ run, trial }) }),
  });
}

function answerOf({ outcome, stdout, stderr }: ExecResult) {
  return {
    exitCode: outcome.kind === "exited" ? outcome.code : 0,
    signal: outcome.kind === "signalled" ? outcome.signal : "",
    timedOut: outcome.kind === "timeout",
    outOfMemory: outcome.kind === "out-of-memory",
    stdout: Buffer.from(stdout.bytes),
    stderr: Buffer.from(stderr.bytes),
    outputTruncated: stdout.isTruncated || stderr.isTruncated,
    failureReason: "reason" in outcome ? outcome.reason : outcome.kind === "cancelled" ? "cancelled" : "",
  };
}
