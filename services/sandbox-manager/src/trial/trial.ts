/**
 * Owns one trial from its launch to its last report: setup, wait for a slot, the harness, quiesce and diff,
 * reports, removal. Does not know other trials (see trials.ts) and does not grade.
 *
 * L1  The agent stage begins only by `start`, which the scheduler calls when it has a slot.
 * L2  Once prepared, a trial ends with exactly one report: ended, or failed; whatever happens to it.
 * L3  The session token goes into the harness's environment and nowhere else.
 * L4  A sandbox is used by one trial and then removed, or kept as a snapshot nobody starts a trial from.
 */
import { type LaunchWork, MortiseError, Stage, TerminationReason } from "@mortise/contracts";
import { fromUnknown } from "@mortise/kernel";
import type { ExecResult, SandboxBackend } from "../backend/types.js";
import type { RemoteHarnesses } from "../remote/remote-harnesses.js";
import { assertAllowed, prepareRemote, type RemoteStage } from "../remote/remote-stage.js";
import type { HarnessShelf } from "../shelf/harnesses.js";
import type { TaskShelf } from "../shelf/tasks.js";
import type { TemplateShelf } from "../shelf/templates.js";
import { withinTime } from "../shelf/within-time.js";
import type { StartGate } from "../start-gate.js";
import type { AgentStage } from "./agent-stage.js";
import type { TrialEnd } from "./end.js";
import type { KeptSandboxes } from "./kept.js";
import type { JournalledLease, RemoteEntry } from "./lease-journal.js";
import { LocalStage } from "./local-stage.js";
import type { ManagerContext } from "./manager-context.js";
import type { ProofInit } from "./reports.js";
import { Setup } from "./setup.js";
import { StageClock } from "./stage-clock.js";
import { isFailure, keeps } from "./termination.js";

/** A task that names no limit of its own still ends. */
const DEFAULT_AGENT_TIMEOUT_MS = 600_000;
const DEFAULT_WARM_TIMEOUT_MS = 600_000;
const DEFAULT_CLEANUP_TIMEOUT_MS = 60_000;
const DEFAULT_KEEP_MS = 3_600_000;
/** A sandbox that waited longer is proved again before its agent starts. */
const PROOF_AGE_MS = 60_000;

export interface TrialTools {
  readonly context: ManagerContext;
  readonly backend: SandboxBackend;
  readonly tasks: TaskShelf;
  readonly harnesses: HarnessShelf;
  readonly remotes: RemoteHarnesses;
  readonly templates: TemplateShelf;
  readonly gate: StartGate;
  readonly kept: KeptSandboxes;
}

export type TrialPhase = "preparing" | "warm" | "running" | "ending";

export class Trial {
  readonly lease: string;
  readonly #work: LaunchWork;
  readonly #tools: TrialTools;
  readonly #clock = new StageClock(Stage.QUEUE);
  readonly #abort = new AbortController();
  readonly #slot = Promise.withResolvers<"slot" | "none">();
  /** Attempts to leave the sandbox; absent where that cannot be told. */
  #nDenied: number | undefined;
  #phase: TrialPhase = "preparing";
  #termination: TerminationReason | undefined;
  #proof: ProofInit | undefined;

  constructor(work: LaunchWork, lease: string, tools: TrialTools) {
    this.#work = work;
    this.lease = lease;
    this.#tools = tools;
  }

  get phase(): TrialPhase {
    return this.#phase;
  }

  /** L1. Idempotent. */
  start(): void {
    this.#slot.resolve("slot");
  }

  /** Ends the trial as soon as possible: `CANCELLED` by its owner, `SANDBOX_LOST` when this manager stops. */
  end(reason: TerminationReason): void {
    this.#termination ??= reason;
    this.#slot.resolve("none");
    this.#abort.abort();
  }

  /**
   * Runs the trial and resolves after its last report and removal. Rejects only before it was announced: then
   * the launch may be tried again, here or elsewhere.
   */
  async run(): Promise<void> {
    const stage = await this.#prepare();
    if (stage === undefined) return;
    this.#proof = stage.proof;
    try {
      await this.#announceAndRun(stage);
    } finally {
      await stage.release(); // L4
    }
  }

  /**
   * Goes on with an agent that an earlier process of this manager left running in a remote runtime, under the lease it
   * was announced with. Begins nothing: what the runtime does not know any more is lost (L2).
   */
  async takeUp(
    stage: RemoteStage,
    { sequence, remote }: JournalledLease & { remote: RemoteEntry },
  ): Promise<void> {
    this.#proof = stage.proof;
    try {
      await this.#conclude(stage, sequence, () => stage.takeUp(remote, this.#abort.signal));
    } finally {
      this.#tools.context.journal.remove(this.lease);
    }
  }

  async #announceAndRun(stage: AgentStage): Promise<void> {
    const { context } = this.#tools;
    this.#clock.next(Stage.WARM, stage.usage);
    const rpcAddress = await context.rpcAddress();
    const after = await this.#publish({ case: "prepared", value: { rpcAddress } }, 0);
    // Another manager has announced this trial: it is theirs.
    if (after === undefined) return;
    this.#phase = "warm";
    context.metrics.prepared.inc();
    const { run, trial } = this.#work;
    const journalled = (remote?: RemoteEntry) =>
      context.journal.add({ run, trial, lease: this.lease, sequence: after, ...(remote && { remote }) });
    journalled();
    try {
      if (await this.#waitForSlot())
        await this.#conclude(stage, after, () => this.#runHarness(stage, (remote) => journalled(remote)));
      else await this.#reportWithoutResult(after);
    } finally {
      context.journal.remove(this.lease);
    }
  }

  /** L2 */
  async #conclude(stage: AgentStage, after: number, running: () => Promise<ExecResult>): Promise<void> {
    try {
      // What was true when the sandbox was made need not be true after a long wait.
      if (this.#clock.spentMs(Stage.WARM) > PROOF_AGE_MS) await stage.prove();
      this.#phase = "running";
      this.#clock.next(Stage.AGENT);
      const result = await running();
      this.#phase = "ending";
      const { nDenied, ...model } = await stage.measured();
      this.#nDenied = nDenied;
      this.#clock.next(Stage.CLEANUP, { ...result.usage, ...model });
      const limitMs = this.#work.cleanupTimeoutMs || DEFAULT_CLEANUP_TIMEOUT_MS;
      await this.#within(limitMs, "rollout.cleanupTimeoutMs", this.#reportEnd(stage, result, after));
    } catch (error) {
      this.#proof = stage.proof;
      const known = fromUnknown(error, "MORTISE_SANDBOX_LOST", `trial ${this.#work.trial}`);
      this.#tools.context.log.error({ event: "trial.lost", ...this.#name(), err: known });
      await this.#reportFailure(TerminationReason.SANDBOX_LOST, known.code, known.message, after);
    }
  }

  /** Undefined when setup failed and that was reported. */
  async #prepare(): Promise<AgentStage | undefined> {
    const remote = this.#tools.remotes.get(this.#work.harness);
    try {
      const launch = { work: this.#work, lease: this.lease };
      const setup = new Setup(launch, this.#tools, this.#clock, this.#abort.signal);
      if (remote === undefined) return new LocalStage(await setup.run(), this.#tools);
      assertAllowed(this.#work);
      const { context } = this.#tools;
      return await prepareRemote(this.#work, { context, remote, task: await setup.task() });
    } catch (error) {
      if (this.#termination !== undefined) {
        await this.#reportWithoutResult(0);
        return undefined;
      }
      const known = fromUnknown(error, "MORTISE_SANDBOX_SETUP", `trial ${this.#work.trial}`);
      this.#tools.context.log.warn({ event: "trial.setup-failed", ...this.#name(), err: known });
      await this.#reportFailure(TerminationReason.SETUP_FAILED, known.code, known.message, 0);
      return undefined;
    }
  }

  async #waitForSlot(): Promise<boolean> {
    const timeoutMs = this.#work.warmTimeoutMs || DEFAULT_WARM_TIMEOUT_MS;
    const timer = setTimeout(() => this.#slot.resolve("none"), timeoutMs);
    try {
      return (await this.#slot.promise) === "slot" && !this.#abort.signal.aborted;
    } finally {
      clearTimeout(timer);
    }
  }

  #runHarness(stage: AgentStage, onRemote: (entry: RemoteEntry) => void): Promise<ExecResult> {
    const { sessionToken: token, agentTimeoutMs, overrides } = this.#work;
    const wishMs = (stage.task.task.agentTimeoutSec ?? Number.POSITIVE_INFINITY) * 1000;
    const multiplier = overrides?.agentTimeoutMultiplier || 1;
    const limitMs = Math.round(Math.min(wishMs, agentTimeoutMs || DEFAULT_AGENT_TIMEOUT_MS) * multiplier);
    const { signal } = this.#abort;
    const running = stage.run({ token, limitMs, signal, onRemote }); // L3
    return this.#within(limitMs + stage.graceMs, "the agent did not end at its limit", running);
  }

  async #reportEnd(stage: AgentStage, result: ExecResult, after: number): Promise<void> {
    const { context } = this.#tools;
    const secrets = [this.#work.sessionToken, ...stage.task.secrets].filter((secret) => secret !== "");
    const end = await stage.end(result, { bus: context.bus, secrets });
    this.#proof = stage.proof;
    const isCancelled = result.outcome.kind === "cancelled";
    const termination = isCancelled ? (this.#termination ?? end.termination) : end.termination;
    if (isFailure(termination)) {
      const why = "reason" in result.outcome ? result.outcome.reason : "the sandbox-manager stopped";
      const code =
        termination === TerminationReason.SETUP_FAILED ? "MORTISE_SANDBOX_SETUP" : "MORTISE_SANDBOX_LOST";
      await this.#reportFailure(termination, code, why, after);
      return;
    }
    const keptUntilMs = isCancelled ? undefined : await this.#keep(stage, termination);
    const denied = this.#nDenied === undefined ? {} : { deniedEgress: BigInt(this.#nDenied) };
    await this.#publish(
      { case: "ended", value: { ...end.report, ...denied, termination } },
      after,
      keptUntilMs,
    );
    this.#logEnd(termination, result, end);
  }

  /** L4. Until when, if it is kept at all. What cannot be kept is no reason to lose a result. */
  async #keep(stage: AgentStage, termination: TerminationReason): Promise<number | undefined> {
    if (!keeps(this.#work.keep, termination)) return undefined;
    const { kept, context } = this.#tools;
    const { run, trial } = this.#work;
    try {
      const parts = await stage.keep();
      return parts && kept.add({ run, trial, task: stage.task, termination, ...parts }, this.#keepMs);
    } catch (error) {
      const known = fromUnknown(error, "MORTISE_SANDBOX_LOST", `snapshot of trial ${trial}`);
      context.log.warn({ event: "trial.not-kept", ...this.#name(), err: known });
      return undefined;
    }
  }

  get #keepMs(): number {
    return this.#work.keepMs || DEFAULT_KEEP_MS;
  }

  /** No slot came, or the trial was ended while it was prepared or waited: nothing ran. */
  async #reportWithoutResult(after: number): Promise<void> {
    this.#phase = "ending";
    const termination = this.#termination ?? TerminationReason.SANDBOX_LOST;
    if (!isFailure(termination)) {
      await this.#publish({ case: "ended", value: { termination } }, after);
      return;
    }
    if (this.#termination !== undefined) {
      await this.#reportFailure(termination, "MORTISE_SANDBOX_LOST", "the sandbox-manager stopped", after);
      return;
    }
    const late = new MortiseError({
      code: "MORTISE_SANDBOX_STAGE_TIMEOUT",
      message: "rollout.warmTimeoutMs: no slot came in time",
    });
    await this.#reportFailure(termination, late.code, late.message, after);
  }

  async #reportFailure(termination: TerminationReason, code: string, reason: string, after: number) {
    this.#tools.context.metrics.ended.inc({ termination: TerminationReason[termination].toLowerCase() });
    await this.#publish({ case: "failed", value: { termination, code, reason } }, after);
  }

  #publish(fact: Parameters<ManagerContext["reporter"]["publish"]>[2], after: number, keptUntilMs?: number) {
    const { reporter } = this.#tools.context;
    const stages = this.#clock.spans();
    return reporter.publish(this.#work, this.lease, fact, { after, stages, proof: this.#proof, keptUntilMs });
  }

  #within<T>(limitMs: number, limit: string, work: Promise<T>): Promise<T> {
    return withinTime(this.#tools.context.clock, limitMs, limit, work);
  }

  /** One wide event per trial. */
  #logEnd(termination: TerminationReason, result: ExecResult, { patch, why }: TrialEnd): void {
    const { context } = this.#tools;
    const name = TerminationReason[termination].toLowerCase();
    context.metrics.ended.inc({ termination: name });
    context.metrics.observe(this.#clock.spans());
    context.metrics.denied.inc(this.#nDenied ?? 0);
    context.log.info({
      event: "trial.ended",
      ...this.#name(),
      harness: this.#work.harness,
      termination: name,
      why,
      outcome: result.outcome,
      usage: result.usage,
      denied: this.#nDenied,
      insecure: result.isInsecure,
      patchEntries: patch?.entries.length ?? 0,
      skipped: patch?.skipped.length ?? 0,
      stages: this.#clock.spans(),
    });
  }

  #name() {
    return { run: this.#work.run, trial: this.#work.trial, task: this.#work.task?.id, lease: this.lease };
  }
}
