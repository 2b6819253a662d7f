/**
 * Owns one trial from its launch to its last report: setup, wait for a slot, the harness, quiesce and diff,
 * reports, removal. Does not know other trials (see trials.ts) and does not grade.
 *
 * L1  The agent stage begins only by `start`, which the scheduler calls when it has a slot.
 * L2  Once prepared, a trial ends with exactly one report: ended, or failed; whatever happens to it.
 * L3  The session token goes into the harness's environment and nowhere else.
 */
import { type LaunchWork, MortiseError, Stage, TerminationReason } from "@mortise/contracts";
import { fromUnknown } from "@mortise/kernel";
import type { ExecResult, Limits, Sandbox, SandboxBackend } from "../backend/types.js";
import { type ContentInit, putContent } from "../content-store.js";
import { limitsFor, patchLimits } from "../limits.js";
import { encodePatch } from "../patch/codec.js";
import type { Patch } from "../patch/patch.js";
import { type HarnessShelf, harnessCommand, type ShelvedHarness } from "../shelf/harnesses.js";
import type { ShelvedTask, TaskShelf } from "../shelf/tasks.js";
import type { StartGate } from "../start-gate.js";
import type { ManagerContext } from "./manager-context.js";
import { StageClock } from "./stage-clock.js";
import { isFailure, terminationOf } from "./termination.js";

const OUTPUT_TAIL_BYTES = 4096;
/** A task that names no limit of its own still ends. */
const DEFAULT_AGENT_TIMEOUT_MS = 600_000;
const DEFAULT_SETUP_TIMEOUT_MS = 60_000;
const DEFAULT_WARM_TIMEOUT_MS = 600_000;

export interface TrialTools {
  readonly context: ManagerContext;
  readonly backend: SandboxBackend;
  readonly tasks: TaskShelf;
  readonly harnesses: HarnessShelf;
  readonly gate: StartGate;
}

export type TrialPhase = "preparing" | "warm" | "running" | "ending";

interface Prepared {
  readonly task: ShelvedTask;
  readonly harness: ShelvedHarness;
  readonly limits: Limits;
  readonly sandbox: Sandbox;
}

export class Trial {
  readonly lease: string;
  readonly #work: LaunchWork;
  readonly #tools: TrialTools;
  readonly #clock = new StageClock(Stage.QUEUE);
  readonly #abort = new AbortController();
  readonly #slot = Promise.withResolvers<"slot" | "none">();
  #phase: TrialPhase = "preparing";
  #termination: TerminationReason | undefined;

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
    const prepared = await this.#prepare();
    if (prepared === undefined) return;
    try {
      await this.#announceAndRun(prepared);
    } finally {
      await prepared.sandbox.destroy();
    }
  }

  async #announceAndRun(prepared: Prepared): Promise<void> {
    const { context } = this.#tools;
    this.#clock.next(Stage.WARM);
    const rpcAddress = await context.rpcAddress();
    const after = await this.#publish({ case: "prepared", value: { rpcAddress } }, 0);
    // Another manager has announced this trial: it is theirs.
    if (after === undefined) return;
    this.#phase = "warm";
    context.metrics.prepared.inc();
    const entry = { run: this.#work.run, trial: this.#work.trial, lease: this.lease, sequence: after };
    context.journal.add(entry);
    try {
      await this.#finish(prepared, after);
    } finally {
      context.journal.remove(this.lease);
    }
  }

  /** L2 */
  async #finish(prepared: Prepared, after: number): Promise<void> {
    try {
      if (!(await this.#waitForSlot())) {
        await this.#reportWithoutResult(after);
        return;
      }
      this.#phase = "running";
      this.#clock.next(Stage.AGENT);
      const result = await this.#runHarness(prepared);
      this.#phase = "ending";
      this.#clock.next(Stage.CLEANUP, result.usage.cpuMs);
      await this.#reportEnd(prepared, result, after);
    } catch (error) {
      const known = fromUnknown(error, "MORTISE_SANDBOX_LOST", `trial ${this.#work.trial}`);
      this.#tools.context.log.error({ event: "trial.lost", ...this.#name(), err: known });
      await this.#reportFailure(TerminationReason.SANDBOX_LOST, known.code, known.message, after);
    }
  }

  /** Undefined when setup failed and that was reported. */
  async #prepare(): Promise<Prepared | undefined> {
    const timeoutMs = this.#work.setupTimeoutMs || DEFAULT_SETUP_TIMEOUT_MS;
    const late = new MortiseError({
      code: "MORTISE_SANDBOX_SETUP",
      message: `setup took longer than ${timeoutMs} ms`,
    });
    let isLate = false;
    const preparing = this.#tools.gate.pass(() => this.#setUp());
    const timer = Promise.withResolvers<never>();
    const handle = setTimeout(() => {
      isLate = true;
      timer.reject(late);
    }, timeoutMs);
    // A sandbox that comes up after we stopped waiting is removed, not leaked.
    preparing.then(
      async ({ sandbox }) => {
        if (isLate) await sandbox.destroy();
      },
      () => undefined,
    );
    try {
      return await Promise.race([preparing, timer.promise]);
    } catch (error) {
      const known = fromUnknown(error, "MORTISE_SANDBOX_SETUP", `trial ${this.#work.trial}`);
      this.#tools.context.log.warn({ event: "trial.setup-failed", ...this.#name(), err: known });
      await this.#reportFailure(TerminationReason.SETUP_FAILED, known.code, known.message, 0);
      return undefined;
    } finally {
      clearTimeout(handle);
    }
  }

  async #setUp(): Promise<Prepared> {
    this.#clock.next(Stage.SETUP);
    const { tasks, harnesses, backend, context } = this.#tools;
    const task = await tasks.get(this.#work.task);
    const harness = await harnesses.get(this.#work.harness);
    const limits = limitsFor(context.site.sandbox, task.task, this.#work.limits);
    const sandbox = await backend.create({
      id: `${this.#work.trial}-${this.lease}`.slice(-100),
      image: task.image,
      workspace: task.workspace,
      mounts: [harness.mount],
      limits,
      network: { kind: "model", ...parseAddress(this.#work.modelAddress) },
    });
    return { task, harness, limits, sandbox };
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

  #runHarness({ task, harness, sandbox }: Prepared): Promise<ExecResult> {
    const { sessionToken: token, model, agentTimeoutMs } = this.#work;
    const wishMs = (task.task.agentTimeoutSec ?? Number.POSITIVE_INFINITY) * 1000;
    return sandbox.exec({
      ...harnessCommand(harness, task, { token, model }), // L3
      timeoutMs: Math.min(wishMs, agentTimeoutMs || DEFAULT_AGENT_TIMEOUT_MS),
      signal: this.#abort.signal,
    });
  }

  async #reportEnd(prepared: Prepared, result: ExecResult, after: number): Promise<void> {
    const { sandbox, limits, harness } = prepared;
    const { isModelUnreachable } = sandbox;
    await sandbox.quiesce();
    const hasResult = !["cancelled", "refused", "lost"].includes(result.outcome.kind);
    const patch = hasResult ? await sandbox.diff(patchLimits(limits)) : undefined;
    const evidence = { result, isModelUnreachable, exitCodes: harness.definition.exitCodes };
    const reason = terminationOf(patch === undefined ? evidence : { ...evidence, patch });
    const termination = result.outcome.kind === "cancelled" ? (this.#termination ?? reason) : reason;
    if (isFailure(termination)) {
      const why = "reason" in result.outcome ? result.outcome.reason : "the sandbox-manager stopped";
      const code =
        termination === TerminationReason.SETUP_FAILED ? "MORTISE_SANDBOX_SETUP" : "MORTISE_SANDBOX_LOST";
      await this.#reportFailure(termination, code, why, after);
      return;
    }
    const value = {
      termination,
      exitCode: result.outcome.kind === "exited" ? result.outcome.code : 0,
      signal: result.outcome.kind === "signalled" ? result.outcome.signal : "",
      outputTail: outputTail(result),
      ...(patch === undefined ? {} : { patch: await this.#store(patch), patchEntries: patch.entries.length }),
    };
    await this.#publish({ case: "ended", value }, after);
    this.#logEnd(termination, result, patch);
  }

  async #store(patch: Patch): Promise<ContentInit> {
    return putContent(this.#tools.context.bus, await encodePatch(patch));
  }

  /** No slot came, or the trial was ended while it waited: nothing ran. */
  async #reportWithoutResult(after: number): Promise<void> {
    this.#phase = "ending";
    const termination = this.#termination ?? TerminationReason.SANDBOX_LOST;
    if (isFailure(termination)) {
      const why = this.#termination === undefined ? "no slot came in time" : "the sandbox-manager stopped";
      await this.#reportFailure(termination, "MORTISE_SANDBOX_LOST", why, after);
    } else await this.#publish({ case: "ended", value: { termination } }, after);
  }

  async #reportFailure(termination: TerminationReason, code: string, reason: string, after: number) {
    this.#tools.context.metrics.ended.inc({ termination: TerminationReason[termination].toLowerCase() });
    await this.#publish({ case: "failed", value: { termination, code, reason } }, after);
  }

  #publish(fact: Parameters<ManagerContext["reporter"]["publish"]>[2], after: number) {
    const { reporter } = this.#tools.context;
    return reporter.publish(this.#work, this.lease, fact, { after, stages: this.#clock.spans() });
  }

  /** One wide event per trial. */
  #logEnd(termination: TerminationReason, result: ExecResult, patch: Patch | undefined): void {
    const { context } = this.#tools;
    const name = TerminationReason[termination].toLowerCase();
    context.metrics.ended.inc({ termination: name });
    for (const { stage, wallMs } of this.#clock.spans())
      context.metrics.stageMs.observe({ stage: Stage[stage].toLowerCase() }, wallMs);
    context.log.info({
      event: "trial.ended",
      ...this.#name(),
      harness: this.#work.harness,
      termination: name,
      outcome: result.outcome,
      usage: result.usage,
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

function outputTail({ stdout, stderr }: ExecResult): string {
  const tail = (bytes: Uint8Array) => Buffer.from(bytes.subarray(-OUTPUT_TAIL_BYTES / 2)).toString("utf8");
  return tail(stdout.bytes) + tail(stderr.bytes);
}

/** "host:port", the host possibly an IPv6 address in brackets. */
function parseAddress(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon).replace(/^\[|\]$/g, "");
  const port = Number(address.slice(colon + 1));
  if (colon < 1 || !Number.isInteger(port) || port < 1 || port > 65_535)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_SETUP",
      message: `model_address ${JSON.stringify(address)} is not host:port`,
    });
  return { host, port };
}
