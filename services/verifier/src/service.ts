/**
 * Owns the wiring of the verifier: takes VerifyWork from the queue, publishes one Verdict per trial.
 * Does not own sandboxes (it asks a sandbox-manager for each run) and never sees the agent's sandbox.
 *
 * G1  One verdict per trial: a redelivered request whose verdict is on REWARDS is acknowledged unread.
 * G2  A verdict is published before its work item is acknowledged.
 */
import { subject, VerdictSchema, type VerifyWork, VerifyWorkSchema } from "@mortise/contracts";
import type { Meta, Running, ServiceContext, ServiceDefinition } from "@mortise/kernel";
import { gradeTrial } from "./grade.js";
import { LogStore } from "./log-store.js";
import { SandboxManagers } from "./sandbox-managers.js";
import { TaskShelf } from "./task-shelf.js";

export const verifier: ServiceDefinition = { name: "verifier", needsRun: false, start };

async function start(ctx: ServiceContext): Promise<Running> {
  const managers = await SandboxManagers.watch(ctx);
  const tasks = new TaskShelf(ctx.site.tasks.directory);
  const logs = new LogStore(await ctx.bus.objects("blobs"));
  const verdicts = ctx.metrics.counter("mortise_verifier_verdicts_total", "Verdicts by outcome", ["outcome"]);
  const seconds = ctx.metrics.histogram("mortise_verifier_grading_seconds", "Wall clock of one grading", {
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60],
  });

  const handle = async (work: VerifyWork, { signal }: Meta) => {
    const { run, trial } = work;
    if ((await ctx.bus.last("REWARDS", subject.reward(run, trial), VerdictSchema)) !== undefined) return; // G1
    const startedAt = ctx.clock.now();
    const verdict = await gradeTrial(work, {
      managers,
      tasks,
      logs,
      defaultTimeoutMs: ctx.site.verifier.timeoutMs,
      signal,
    });
    await ctx.bus.publish({
      subject: subject.reward(run, trial),
      schema: VerdictSchema,
      message: verdict,
      dedupeId: `${run}/${trial}/verdict`,
    }); // G2
    verdicts.inc({ outcome: String(verdict.outcome) });
    seconds.observe((ctx.clock.now() - startedAt) / 1000);
  };

  const work = await ctx.bus.consume({
    stream: "WORK",
    durable: "verify",
    schema: VerifyWorkSchema,
    concurrency: ctx.site.verifier.concurrency,
    handle,
  });
  return {
    isReady: () => managers.count > 0,
    drain: async () => {
      await work.stop();
      await managers.close();
    },
  };
}
