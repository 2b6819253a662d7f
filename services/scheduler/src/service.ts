/**
 * Owns the wiring of the scheduler: lease, recovery from the streams, the run actor and its edges, RPC, drain.
 * Does not decide anything about trials (run/, trial/, group/).
 *
 * V1  One scheduler acts for a run: it holds the lease, every record carries its fence, and losing the lease ends
 *     the process.
 * V2  A scheduler starts from the streams alone: killed at any point and started again, it goes on.
 */
import { LEASE_TTL_MS, MortiseError, type RunConfig, SchedulerService } from "@mortise/contracts";
import {
  Actor,
  type Following,
  implement,
  Lease,
  type Running,
  type ServiceContext,
  type ServiceDefinition,
  sleep,
  TimerWheel,
} from "@mortise/kernel";
import { readTaskIndex } from "@mortise/tasks";
import { Deadlines } from "./edge/deadlines.js";
import { followFacts } from "./edge/facts.js";
import { Journal } from "./edge/journal.js";
import { Peers } from "./edge/peers.js";
import { Performer } from "./edge/performer.js";
import { Prewarming } from "./edge/prewarming.js";
import { Sandboxes } from "./edge/sandboxes.js";
import { SchedulerMetrics } from "./edge/scheduler-metrics.js";
import { Sessions } from "./edge/sessions.js";
import { type Replayed, replay } from "./recovery/replay.js";
import { restore } from "./recovery/restore.js";
import type { Effect } from "./run/effects.js";
import type { RunMessage } from "./run/messages.js";
import { type RunPlan, runPlan } from "./run/plan.js";
import { runReducer } from "./run/reducer.js";
import type { RunState } from "./run/state.js";
import { upcomingTasks } from "./run/upcoming.js";
import { keepRunRecord, tasksDigest } from "./run-record.js";
import { runStatus } from "./status.js";

export const scheduler: ServiceDefinition = { name: "scheduler", needsRun: true, start };

type RunActor = Actor<RunState, RunMessage, Effect>;

/** Of the 25 s a process has to drain: agents may end by themselves, then they are cancelled. */
const DRAIN_GRACE_MS = 14_000;
const DRAIN_CANCEL_MS = 6_000;
const DRAIN_POLL_MS = 50;
const RECEIPT_PATIENCE_MS = 5_000;

async function start(ctx: ServiceContext): Promise<Running> {
  const config = ctx.run!;
  const plan = await planOf(ctx, config);
  const lease = await Lease.acquire(await ctx.bus.kv("leases"), `${config.run.id}.scheduler`, {
    holder: ctx.instance,
    ttlMs: LEASE_TTL_MS,
    clock: ctx.clock,
    signal: ctx.signal,
  });
  void lease.lost.then(() => ctx.fail(fenced(config.run.id))); // V1
  const replayed = await replay(ctx.bus, config.run.id); // V2
  const stop = new AbortController();
  const { actor, peers, wheel } = await assemble(ctx, { config, plan, replayed, lease, stop });
  const followings = await followFacts(ctx.bus, config.run.id, (message) => actor.send(message));
  actor.send({ kind: "reconciled" });
  watchReceipts(actor, ctx, stop.signal);
  const prewarming = new Prewarming({
    run: config.run.id,
    harness: config.rollout.harness,
    peers,
    clock: ctx.clock,
    log: ctx.log,
    upcoming: () => upcomingTasks(actor.state, plan, config.rollout.prewarm),
  });
  return {
    bindings: [statusService(actor, plan)],
    presence: { run: config.run.id },
    isReady: () => actor.state.isLive,
    drain: async () => {
      prewarming.stop();
      await drain(actor, ctx);
      stop.abort();
      await close(followings, peers, wheel);
      await lease.release();
    },
  };
}

async function planOf(ctx: ServiceContext, config: RunConfig): Promise<RunPlan> {
  const index = readTaskIndex(config.tasks.index ?? ctx.site.tasks.directory);
  const split = (name: string) => index.filter((task) => task.split === name);
  const train = split(config.tasks.train);
  const evaluate = split(config.tasks.evaluate);
  const trains = config.run.mode === "training" && config.trainer.steps > 0;
  requireTasks(train.length > 0 || !trains, "tasks.train", config.tasks.train);
  requireTasks(
    evaluate.length > 0 || config.evaluation.attempts === 0,
    "tasks.evaluate",
    config.tasks.evaluate,
  );
  const record = { schema: 1, config, tasksDigest: tasksDigest([train, evaluate]) } as const;
  await keepRunRecord(await ctx.bus.kv("runs"), record);
  return runPlan(config, { train, evaluate });
}

function requireTasks(hasTasks: boolean, field: string, split: string): void {
  if (hasTasks) return;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `${field} is ${JSON.stringify(split)}, and the task index has no task in that split.`,
    detail: { field },
  });
}

interface Parts {
  readonly config: RunConfig;
  readonly plan: RunPlan;
  readonly replayed: Replayed;
  readonly lease: Lease;
  readonly stop: AbortController;
}

async function assemble(ctx: ServiceContext, { config, plan, replayed, lease, stop }: Parts) {
  const { bus, log, clock, bearer } = ctx;
  const { signal } = stop;
  const run = config.run.id;
  const fence = BigInt(lease.fence);
  const peers = await Peers.watch(bus, bearer);
  const wheel = new TimerWheel(clock, 100);
  const send = (message: RunMessage) => actor.send(message);
  const trialNow = (id: string) => actor.state.trials.get(id);
  const fail = (error: unknown) => {
    if (!signal.aborted) ctx.fail(error);
  };
  const journal = new Journal({
    bus,
    run,
    fence,
    clock,
    signal,
    sequences: replayed.sequences,
    onStorage: (isFull) => send({ kind: "storage", isFull }),
    onFatal: fail,
  });
  const performer = new Performer({
    config,
    fence,
    bus,
    clock,
    log,
    signal,
    journal,
    sessions: new Sessions({ config, peers, clock, signal, log, trialNow }),
    sandboxes: new Sandboxes({ run, peers, clock, signal, log, trialNow }),
    deadlines: new Deadlines({
      clock: wheel,
      isLive: (peer) => peers.hasAny(peer),
      strike: (trial, stage) => send({ kind: "trial", trial, fact: { kind: "deadline", stage } }),
    }),
    metrics: new SchedulerMetrics(ctx.metrics, () => actor.state),
    ...(replayed.phaseAtMs === undefined ? {} : { phaseAtMs: replayed.phaseAtMs }),
  });
  const actor: RunActor = new Actor({
    name: `run ${run}`,
    initial: restore(plan, replayed),
    reduce: runReducer(plan),
    perform: (effect) => performer.perform(effect, send),
    onFault: fail,
  });
  return { actor, peers, wheel };
}

function statusService(actor: RunActor, plan: RunPlan) {
  return implement(SchedulerService, {
    getRunStatus: async () => runStatus(actor.state, plan),
    drainRun: async () => {
      actor.send({ kind: "drain", cancelRunning: false });
      return {};
    },
  });
}

/** Stops admission, lets agents end for a while, cancels the rest. What is left is in the log. */
async function drain(actor: RunActor, ctx: ServiceContext): Promise<void> {
  actor.send({ kind: "drain", cancelRunning: false });
  await emptied(actor, ctx, DRAIN_GRACE_MS);
  actor.send({ kind: "drain", cancelRunning: true });
  await emptied(actor, ctx, DRAIN_CANCEL_MS);
}

async function emptied(actor: RunActor, { clock }: ServiceContext, limitMs: number): Promise<void> {
  const until = clock.now() + limitMs;
  do {
    await sleep(DRAIN_POLL_MS, clock);
  } while (clock.now() < until && [...actor.state.trials.values()].some(({ stage }) => stage !== "queued"));
}

async function close(followings: readonly Following[], peers: Peers, wheel: TimerWheel): Promise<void> {
  await Promise.all(followings.map((following) => following.stop()));
  await peers.close();
  wheel.close();
}

/** Says when a version found no engine within the patience, so that an evaluation does not wait for ever. */
function watchReceipts(actor: RunActor, { clock, log }: ServiceContext, signal: AbortSignal): void {
  let before = -1;
  const look = () => {
    const { version, acknowledged } = actor.state;
    if (version > acknowledged && version === before) {
      log.warn({ event: "engine.receipt-overdue", version, acknowledged });
      actor.send({ kind: "receipt-overdue", version });
    }
    before = version;
    cancel = clock.after(RECEIPT_PATIENCE_MS, look);
  };
  let cancel = clock.after(RECEIPT_PATIENCE_MS, look);
  signal.addEventListener("abort", () => cancel(), { once: true });
}

function fenced(run: string): MortiseError {
  return new MortiseError({ code: "MORTISE_TRANSPORT_FENCED", message: `leases/${run}.scheduler was lost.` });
}
