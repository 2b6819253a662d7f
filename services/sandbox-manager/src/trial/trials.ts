/**
 * Owns which trials live at this manager: launches from the bus, starts and cancellations by their lease, and
 * what becomes of a launch that is delivered more than once.
 *
 * T1  A launch whose trial has ended is done: it is acknowledged and nothing runs.
 * T2  A launch whose trial was announced by a lease that is not ours is lost: the agent may have spoken to the
 *     model, so it must not run a second time under the same name. It is reported once; a retry is a new trial.
 * T3  An agent in a remote runtime does not end with its manager: the next process asks for it by its id and begins
 *     nothing. A launch that is delivered again meanwhile is that trial's.
 */
import { create } from "@bufbuild/protobuf";
import { type LaunchWork, LaunchWorkSchema, MortiseError, TerminationReason } from "@mortise/contracts";
import { fromUnknown, randomToken } from "@mortise/kernel";
import type { Counts } from "../manager-metrics.js";
import { RemoteStage } from "../remote/remote-stage.js";
import type { JournalledLease, RemoteEntry } from "./lease-journal.js";
import { Trial, type TrialTools } from "./trial.js";

/** Ended leases that still answer a repeated start, so that a late question is not taken for a loss. */
const REMEMBERED_LEASES = 2048;
const LEASE_BYTES = 9;

export class Trials {
  readonly #tools: TrialTools;
  readonly #live = new Map<string, { readonly trial: Trial; readonly done: Promise<void> }>();
  readonly #ended = new Set<string>();
  #isStopping = false;

  constructor(tools: TrialTools) {
    this.#tools = tools;
  }

  counts(): Counts {
    const phases = [...this.#live.values()].map(({ trial }) => trial.phase);
    const count = (phase: string) => phases.filter((candidate) => candidate === phase).length;
    return { preparing: count("preparing"), warm: count("warm"), running: count("running") };
  }

  /** Handles one launch to its end. Rejects when it was not announced and may be tried again. */
  async launch(work: LaunchWork, signal: AbortSignal): Promise<void> {
    const key = keyOf(work.run, work.trial);
    const live = this.#live.get(key);
    if (live !== undefined) return live.done;
    const trial = new Trial(work, randomToken(LEASE_BYTES), this.#tools);
    const stop = () => trial.end(TerminationReason.SANDBOX_LOST);
    signal.addEventListener("abort", stop, { once: true });
    const done = this.#runUnlessSettled(work, trial).finally(() => {
      signal.removeEventListener("abort", stop);
      this.#live.delete(key);
      this.#remember(trial.lease);
    });
    this.#live.set(key, { trial, done });
    return done;
  }

  /** Rejects with MORTISE_SANDBOX_UNKNOWN_LEASE. Idempotent. */
  startAgent(run: string, name: string, lease: string): void {
    if (this.#ended.has(lease)) return;
    const live = this.#live.get(keyOf(run, name));
    if (live === undefined || live.trial.lease !== lease)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_UNKNOWN_LEASE",
        message: `trial ${name}, lease ${lease}`,
      });
    live.trial.start();
  }

  /** Whether there was something to cancel. */
  cancel(run: string, name: string): boolean {
    const live = this.#live.get(keyOf(run, name));
    live?.trial.end(TerminationReason.CANCELLED);
    return live !== undefined;
  }

  /**
   * Takes up what an earlier process of this manager left running in a remote runtime (T3), and reports its other
   * leases as lost. Resolves when the former is known here and the latter is done.
   */
  async recover(leftovers: readonly JournalledLease[]): Promise<void> {
    for (const entry of leftovers) {
      if (entry.remote !== undefined && this.#takeUp({ ...entry, remote: entry.remote })) continue;
      await this.#publishLost(entry, entry.lease, entry.sequence, "its sandbox-manager was restarted");
      this.#tools.context.journal.remove(entry.lease);
    }
  }

  /** Ends what lives; resolves when every trial has reported. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const { trial } of this.#live.values()) trial.end(TerminationReason.SANDBOX_LOST);
    await Promise.allSettled([...this.#live.values()].map(({ done }) => done));
  }

  /** T3. False when its runtime is not in the site file any more. */
  #takeUp(entry: JournalledLease & { readonly remote: RemoteEntry }): boolean {
    const { context, tasks, remotes } = this.#tools;
    const remote = remotes.get(entry.remote.harness);
    if (remote === undefined) return false;
    const { run, trial: name, lease } = entry;
    const { task: ref, harness, agent, limits } = entry.remote;
    const work = create(LaunchWorkSchema, { run, trial: name, harness, task: ref });
    const trial = new Trial(work, lease, this.#tools);
    const key = keyOf(run, name);
    const taking = async () => {
      const task = await tasks.get(work.task);
      await trial.takeUp(new RemoteStage({ context, remote, task, limits }, agent), entry);
    };
    const done = taking()
      .catch(async (error: unknown) => {
        const { message } = fromUnknown(error, "MORTISE_SANDBOX_LOST", `trial ${name}`);
        await this.#publishLost(entry, lease, entry.sequence, message);
        context.journal.remove(lease);
      })
      .finally(() => {
        this.#live.delete(key);
        this.#remember(lease);
      });
    context.log.info({ event: "trial.taken-up", run, trial: name, lease, task: entry.remote.handle.task });
    this.#live.set(key, { trial, done });
    return true;
  }

  async #runUnlessSettled(work: LaunchWork, trial: Trial): Promise<void> {
    if (await this.#isSettled(work)) return;
    if (this.#isStopping)
      throw new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message: "the manager is stopping" });
    await trial.run();
  }

  /** T1, T2 */
  async #isSettled(work: LaunchWork): Promise<boolean> {
    const last = await this.#tools.context.reporter.last(work);
    if (last === undefined) return false;
    if (last.report.fact.case === "prepared")
      await this.#publishLost(work, last.report.lease, last.sequence, "its launch was delivered again");
    return true;
  }

  async #publishLost(name: { run: string; trial: string }, lease: string, after: number, why: string) {
    const { reporter, log, metrics } = this.#tools.context;
    const termination = TerminationReason.SANDBOX_LOST;
    const value = { termination, code: "MORTISE_SANDBOX_LOST", reason: `lease ${lease}: ${why}` };
    const sequence = await reporter.publish(name, lease, { case: "failed", value }, { after, stages: [] });
    if (sequence === undefined) return;
    metrics.ended.inc({ termination: "sandbox_lost" });
    log.warn({ event: "trial.lost", run: name.run, trial: name.trial, lease, reason: why });
  }

  #remember(lease: string): void {
    this.#ended.add(lease);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= REMEMBERED_LEASES) break;
      this.#ended.delete(oldest);
    }
  }
}

function keyOf(run: string, trial: string): string {
  return `${run}/${trial}`;
}
