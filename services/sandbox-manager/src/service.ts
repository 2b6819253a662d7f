/**
 * Owns the wiring of a sandbox-manager: backend, shelves, the launch consumer, RPC, drain.
 * Decides nothing about trials (trial/) or sandboxes (backend/).
 */
import path from "node:path";
import { LaunchWorkSchema, SandboxService } from "@mortise/contracts";
import {
  findServices,
  implement,
  type Running,
  type ServiceBinding,
  type ServiceContext,
  type ServiceDefinition,
  sleep,
} from "@mortise/kernel";
import type { SandboxBackend } from "./backend/types.js";
import { cgroupCount, MANY_CGROUPS, ManagerMetrics } from "./manager-metrics.js";
import { RunOnce } from "./run-once.js";
import { selectBackend } from "./select-backend.js";
import { HarnessShelf } from "./shelf/harnesses.js";
import { TaskShelf } from "./shelf/tasks.js";
import { StartGate } from "./start-gate.js";
import { LeaseJournal } from "./trial/lease-journal.js";
import type { ManagerContext } from "./trial/manager-context.js";
import { Reporter } from "./trial/reports.js";
import { Trials } from "./trial/trials.js";

/** Of the 25 s a process has to drain: the scheduler drains first, so what is left is cut soon. */
const DRAIN_GRACE_MS = 15_000;
const ADDRESS_PAUSE_MS = 20;

export const sandboxManager: ServiceDefinition = { name: "sandbox-manager", needsRun: false, start };

async function start(ctx: ServiceContext): Promise<Running> {
  const backend = await selectBackend(ctx.site.sandbox, ctx.stateDirectory, ctx.log);
  const swept = await backend.start();
  ctx.log.info({ event: "sandbox.swept", ...swept });
  const metrics = new ManagerMetrics(ctx.metrics, () => trials.counts());
  const context = managerContext(ctx, backend, metrics);
  const gate = new StartGate(ctx.site.sandbox.maxConcurrentStarts);
  const tasks = new TaskShelf(backend, ctx.site);
  const harnesses = new HarnessShelf(backend, ctx.site);
  const trials = new Trials({ context, backend, tasks, harnesses, gate });
  await trials.reportLost(context.journal.leftovers());
  const consuming = await ctx.bus.consume({
    stream: "WORK",
    durable: "launch",
    schema: LaunchWorkSchema,
    concurrency: ctx.site.sandbox.maxSandboxes,
    handle: (work, meta) => trials.launch(work, meta.signal),
  });
  const runOnce = new RunOnce({ context, backend, tasks, gate });
  return {
    bindings: [bindingOf(trials, runOnce, backend)],
    presence: { backend: backend.name, insecure: String(backend.isInsecure) },
    drain: async () => {
      await consuming.stop(DRAIN_GRACE_MS);
      await trials.stop();
      await backend.stop();
    },
  };
}

function managerContext(
  ctx: ServiceContext,
  backend: SandboxBackend,
  metrics: ManagerMetrics,
): ManagerContext {
  const { bus, log, site, instance } = ctx;
  const { name, isInsecure } = backend;
  return {
    site,
    bus,
    log,
    metrics,
    reporter: new Reporter({ bus, manager: instance, backend: name, isInsecure }),
    journal: new LeaseJournal(path.join(ctx.stateDirectory, "leases")),
    rpcAddress: memoised(() => ownAddress(ctx)),
  };
}

/** The address this instance announced; asked for by the first trial, possibly before it was announced. */
async function ownAddress(ctx: ServiceContext): Promise<string> {
  for (;;) {
    const instances = await findServices(ctx.bus, ctx.name);
    const own = instances.find(({ instance, pid }) => instance === ctx.instance && pid === process.pid);
    if (own !== undefined) return own.rpcAddress;
    await sleep(ADDRESS_PAUSE_MS, ctx.clock, ctx.signal);
  }
}

function memoised<T>(ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  return () => {
    answer ??= ask().catch((error) => {
      answer = undefined;
      throw error;
    });
    return answer;
  };
}

function bindingOf(trials: Trials, runOnce: RunOnce, backend: SandboxBackend): ServiceBinding {
  return implement(SandboxService, {
    startAgent: async ({ run, trial, lease }) => {
      trials.startAgent(run, trial, lease);
      return { started: true };
    },
    cancelTrial: async ({ run, trial }) => ({ cancelled: trials.cancel(run, trial) }),
    runOnce: (request, { signal }) => runOnce.handle(request, signal),
    getSandboxStatus: async () => ({
      backend: backend.name,
      insecure: backend.isInsecure,
      ...trials.counts(),
      warnings: warnings(backend),
    }),
  });
}

function warnings(backend: SandboxBackend): string[] {
  const found = backend.isInsecure ? [`the ${backend.name} backend isolates nothing: development only`] : [];
  const cgroups = cgroupCount() ?? 0;
  if (cgroups > MANY_CGROUPS)
    found.push(`the kernel holds ${cgroups} memory control groups: starts get slower`);
  return found;
}
