/**
 * Owns the wiring of a sandbox-manager: backend, shelves, the launch consumer, RPC, drain.
 * Decides nothing about trials (trial/) or sandboxes (backend/).
 */
import { mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { LaunchWorkSchema } from "@mortise/contracts";
import {
  findServices,
  type Running,
  type ServiceContext,
  type ServiceDefinition,
  sleep,
} from "@mortise/kernel";
import type { SandboxBackend } from "./backend/types.js";
import { RecordStore } from "./content-store.js";
import { TaskImages } from "./images/build/task-images.js";
import { ManagerMetrics } from "./manager-metrics.js";
import { RemoteHarnesses } from "./remote/remote-harnesses.js";
import { RunOnce } from "./run-once.js";
import { bindingOf } from "./sandbox-service.js";
import { registryOf, selectBackend } from "./select-backend.js";
import { HarnessShelf } from "./shelf/harnesses.js";
import { Prewarmer } from "./shelf/prewarmer.js";
import { TaskShelf } from "./shelf/tasks.js";
import { TemplateShelf } from "./shelf/templates.js";
import { StartGate } from "./start-gate.js";
import { KeptSandboxes } from "./trial/kept.js";
import { LeaseJournal } from "./trial/lease-journal.js";
import type { ManagerContext } from "./trial/manager-context.js";
import { Reporter } from "./trial/reports.js";
import { Trials } from "./trial/trials.js";

/** Of the 25 s a process has to drain: the scheduler drains first, so what is left is cut soon. */
const DRAIN_GRACE_MS = 15_000;
const ADDRESS_PAUSE_MS = 20;
/** Templates that nobody used for too long are looked for this often. */
const EVICT_EVERY_MS = 60_000;

export const sandboxManager: ServiceDefinition = { name: "sandbox-manager", needsRun: false, start };

async function start(ctx: ServiceContext): Promise<Running> {
  const backend = await selectBackend(ctx.site.sandbox, ctx.stateDirectory, ctx.log);
  const swept = await backend.start();
  ctx.log.info({ event: "sandbox.swept", ...swept });
  const parts = assemble(ctx, backend);
  const { trials, prewarmer, templates, kept, context, harnesses } = parts;
  void harnesses.prepareAll();
  await trials.recover(context.journal.leftovers());
  const consuming = await ctx.bus.consume({
    stream: "WORK",
    durable: "launch",
    schema: LaunchWorkSchema,
    concurrency: ctx.site.sandbox.maxSandboxes,
    handle: (work, meta) => trials.launch(work, meta.signal),
  });
  const stopEvicting = every(EVICT_EVERY_MS, ctx, () => templates.evict());
  return {
    bindings: [bindingOf(parts)],
    presence: { backend: backend.name, insecure: String(backend.isInsecure) },
    drain: async () => {
      stopEvicting();
      prewarmer.stop();
      await consuming.stop(DRAIN_GRACE_MS);
      await trials.stop();
      await prewarmer.idle();
      await kept.close();
      await templates.close();
      await backend.stop();
    },
  };
}

function assemble(ctx: ServiceContext, backend: SandboxBackend) {
  const { site, log, clock } = ctx;
  const gate = new StartGate(site.sandbox.maxConcurrentStarts);
  const metrics = new ManagerMetrics(ctx.metrics, {
    counts: () => trials.counts(),
    templates: () => templates,
    waiting: () => gate.waiting,
  });
  const context = managerContext(ctx, backend, metrics);
  const images = new TaskImages({
    backend: backend.name,
    stateDirectory: path.join(ctx.stateDirectory, backend.name),
    site: site.sandbox.images.build,
    registry: registryOf(site.sandbox.images),
    engine: site.sandbox.docker,
    log,
    clock,
  });
  const tasks = new TaskShelf(backend, site, clock, (task) => images.get(task));
  const harnesses = new HarnessShelf(backend, site, log);
  const templates = new TemplateShelf({
    backend,
    gate,
    clock,
    records: context.records,
    limits: { maxBytes: site.sandbox.templateBytes, maxAgeMs: site.sandbox.templateAgeMs },
    scratchDirectory: emptied(path.join(ctx.stateDirectory, "histories")),
    onFault: (error) => log.warn({ event: "template.not-released", err: error }),
  });
  const kept = new KeptSandboxes({ backend, clock, log, maxKept: site.sandbox.maxKept });
  const remotes = new RemoteHarnesses(site, clock);
  const tools = { context, backend, tasks, harnesses, remotes, templates, gate, kept };
  const trials = new Trials(tools);
  const prewarmer = new Prewarmer({ tasks, templates, harnesses, remotes, log });
  const scratchDirectory = emptied(path.join(ctx.stateDirectory, "diffs"));
  const runOnce = new RunOnce({ context, backend, tasks, gate, scratchDirectory });
  return { ...tools, trials, prewarmer, runOnce };
}

/** What an earlier process left there was half done. */
function emptied(directory: string): string {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return directory;
}

function managerContext(
  ctx: ServiceContext,
  backend: SandboxBackend,
  metrics: ManagerMetrics,
): ManagerContext {
  const { bus, log, site, instance, clock } = ctx;
  const { name, isInsecure } = backend;
  return {
    site,
    bus,
    clock,
    log,
    metrics,
    reporter: new Reporter({ bus, manager: instance, backend: name, isInsecure }),
    journal: new LeaseJournal(path.join(ctx.stateDirectory, "leases")),
    records: new RecordStore(bus),
    rpcAddress: memoised(() => ownAddress(ctx)),
  };
}

/** Calls again and again until the result is called. */
function every(ms: number, { clock }: ServiceContext, act: () => void): () => void {
  let cancel = clock.after(ms, tick);
  function tick(): void {
    act();
    cancel = clock.after(ms, tick);
  }
  return () => cancel();
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
