/**
 * Owns everything between a launch and a sandbox that is ready for its agent: task, harness and template, the turn at
 * the start gate, the sandbox itself, its proof, its health. Each stage has its own limit and its own reason.
 * Does not report and does not run the agent (trial.ts).
 *
 * U1  A sandbox is handed on only when it is sealed and its network is proved (DESIGN §7).
 * U2  Whatever fails or comes too late leaves nothing: sandboxes are removed, leases ended.
 */
import { type LaunchWork, MortiseError, Stage } from "@mortise/contracts";
import { sleep } from "@mortise/kernel";
import type { Limits, Mount, Sandbox, SandboxUser } from "../backend/types.js";
import { environmentOf } from "../environment.js";
import type { HarnessFacts, ShelvedHarness } from "../harness/shelved-harness.js";
import { limitsFor, scratchVolumes, sharedMounts } from "../limits.js";
import type { CacheLease } from "../shelf/pinned-cache.js";
import { baseOf, type ShelvedTask, userOf } from "../shelf/tasks.js";
import type { Template } from "../shelf/templates.js";
import { withinTime } from "../shelf/within-time.js";
import { waitUntilHealthy } from "./healthcheck.js";
import { assertOwnPlaces } from "./own-places.js";
import { proofOf } from "./proof.js";
import { parseModelAddress, type Reach, reachOf } from "./reach.js";
import type { ProofInit } from "./reports.js";
import { type ShownTests, showTests } from "./shown-tests.js";
import type { StageClock, StageUsage } from "./stage-clock.js";
import type { TrialTools } from "./trial.js";
import { wishedOf } from "./wishes.js";

/** For launches that name none. */
const DEFAULT_QUEUE_TIMEOUT_MS = 120_000;
const DEFAULT_RATE_LIMIT_TIMEOUT_MS = 120_000;
const DEFAULT_SETUP_TIMEOUT_MS = 60_000;
const DEFAULT_BUILD_TIMEOUT_MS = 600_000;

export interface Prepared {
  readonly task: ShelvedTask;
  readonly harness: ShelvedHarness;
  readonly mounts: readonly Mount[];
  readonly limits: Limits;
  readonly user: SandboxUser;
  /** For the harness; without the token (L3). */
  readonly facts: Omit<HarnessFacts, "token">;
  /** The copy of the hidden tests that lies in the work tree; undefined in every run that does not show them. */
  readonly shown: ShownTests | undefined;
  readonly sandbox: Sandbox;
  readonly proof: ProofInit;
  /** Of what ran in the sandbox until now. */
  readonly usage: StageUsage;
  /** Removes the sandbox and ends its lease of the template. Idempotent. */
  release(): Promise<void>;
}

interface Materials {
  readonly task: ShelvedTask;
  readonly harness: ShelvedHarness;
  readonly template: CacheLease<Template>;
}

interface Made {
  readonly sandbox: Sandbox;
  readonly proof: ProofInit;
}

export class Setup {
  readonly #work: LaunchWork;
  readonly #lease: string;
  readonly #tools: TrialTools;
  readonly #stages: StageClock;
  readonly #signal: AbortSignal;

  constructor(
    { work, lease }: { work: LaunchWork; lease: string },
    tools: TrialTools,
    stages: StageClock,
    signal: AbortSignal,
  ) {
    this.#work = work;
    this.#lease = lease;
    this.#tools = tools;
    this.#stages = stages;
    this.#signal = signal;
  }

  /** Rejects with what failed, or MORTISE_SANDBOX_STAGE_TIMEOUT that names the limit (U2). */
  async run(): Promise<Prepared> {
    const { harnesses, templates } = this.#tools;
    const harness = await this.#withinQueue(harnesses.get(this.#work.harness));
    const task = await this.task();
    const template = await this.#withinSetup(templates.lease(task, this.#work), (late) => late.release());
    try {
      return await this.#start({ task, harness, template });
    } catch (error) {
      template.release();
      throw error;
    }
  }

  /** A harness that this host is still obtaining, once for all trials, costs none of them its setup. */
  #withinQueue<T>(work: Promise<T>): Promise<T> {
    const limitMs = this.#work.queueTimeoutMs || DEFAULT_QUEUE_TIMEOUT_MS;
    const leftMs = limitMs - this.#stages.spentMs(Stage.QUEUE);
    const limit = `rollout.queueTimeoutMs is ${limitMs}; harness ${this.#work.harness} is being made ready`;
    return withinTime(this.#tools.context.clock, leftMs, limit, work);
  }

  /**
   * The task with its image. Building one from its Dockerfile is a stage of its own, whichever trial began it; so is
   * waiting for a registry that says to come again later.
   */
  async task(): Promise<ShelvedTask> {
    const { tasks, context } = this.#tools;
    const limitMs = this.#work.rateLimitTimeoutMs || DEFAULT_RATE_LIMIT_TIMEOUT_MS;
    for (;;) {
      this.#stages.next(Stage.SETUP);
      try {
        await this.#built();
        return await this.#withinSetup(tasks.get(this.#work.task));
      } catch (error) {
        const waitMs = error instanceof MortiseError ? error.retryAfterMs : undefined;
        if (waitMs === undefined) throw error;
        if (this.#stages.spentMs(Stage.RATE_LIMIT) + waitMs > limitMs)
          throw stageTimeout(
            `rollout.rateLimitTimeoutMs is ${limitMs}; the registry asks for ${waitMs} ms more`,
          );
        this.#stages.next(Stage.RATE_LIMIT);
        await sleep(waitMs, context.clock, this.#signal);
      }
    }
  }

  async #built(): Promise<void> {
    const { tasks, context } = this.#tools;
    const building = tasks.building(this.#work.task);
    if (building === undefined) return;
    const limitMs = this.#work.buildTimeoutMs || DEFAULT_BUILD_TIMEOUT_MS;
    this.#stages.next(Stage.BUILD);
    const leftMs = limitMs - this.#stages.spentMs(Stage.BUILD);
    const limit = `rollout.buildTimeoutMs is ${limitMs}; the image of ${this.#work.task?.id} is being built`;
    await withinTime(context.clock, leftMs, limit, Promise.race([building, this.#stopped()]));
    this.#stages.next(Stage.SETUP);
  }

  /** Rejects when the trial is ended: others may still want what it waits for. */
  #stopped(): Promise<never> {
    this.#signal.throwIfAborted();
    return new Promise((_, reject) => {
      this.#signal.addEventListener("abort", () => reject(this.#signal.reason), { once: true });
    });
  }

  async #start(materials: Materials): Promise<Prepared> {
    const { task, harness, template } = materials;
    const { context } = this.#tools;
    const { overrides } = this.#work;
    const site = context.site.sandbox;
    const limits = limitsFor(site, task.task, { limits: this.#work.limits, overrides });
    if (overrides !== undefined) assertOwnPlaces(overrides, task.workdir);
    const mounts = [...harness.mounts, ...sharedMounts(site, overrides ?? { mounts: [] })];
    const { instruction, network, shown, notes } = wishedOf(task, overrides);
    const model = parseModelAddress(this.#work.modelAddress, this.#work.listenerKey);
    const reachable = reachOf(network, site, model);
    const reach = { ...reachable, notes: [...reachable.notes, ...notes] };
    const { sandbox, proof } = await this.#made(materials, { limits, mounts, reach });
    const user = userOf(task, task.task.agent);
    const facts = {
      model: this.#work.model,
      instruction,
      workspace: task.workdir,
      environment: { ...environmentOf(task.image), ...task.task.environment.env },
      user,
    };
    try {
      await this.#withinSetup(this.#ready(materials, sandbox, facts, user));
      if (shown !== undefined) await this.#withinSetup(showTests(sandbox, task.workdir, shown, user));
    } catch (error) {
      await sandbox.destroy();
      throw error;
    }
    const release = async () => {
      await sandbox.destroy();
      template.release();
    };
    const usage = task.task.environment.healthcheck === undefined ? {} : await sandbox.stats();
    return { task, harness, mounts, limits, user, facts, shown, sandbox, proof, usage, release };
  }

  /** Waits for its turn, then makes and proves the sandbox while holding it. */
  async #made(
    materials: Materials,
    wishes: { limits: Limits; mounts: readonly Mount[]; reach: Reach },
  ): Promise<Made> {
    const { gate, context } = this.#tools;
    const limitMs = this.#work.queueTimeoutMs || DEFAULT_QUEUE_TIMEOUT_MS;
    const patience = new AbortController();
    this.#stages.next(Stage.QUEUE);
    const cancel = context.clock.after(Math.max(0, limitMs - this.#stages.spentMs(Stage.QUEUE)), () =>
      patience.abort(stageTimeout(`rollout.queueTimeoutMs is ${limitMs}; its turn to start did not come`)),
    );
    const begun = Promise.withResolvers<void>();
    const making = gate.pass(
      this.#work,
      () => {
        cancel();
        this.#stages.next(Stage.SETUP);
        begun.resolve();
        return this.#make(materials, wishes);
      },
      { signal: patience.signal },
    );
    await Promise.race([begun.promise, making]);
    return this.#withinSetup(making, (late) => late.sandbox.destroy());
  }

  async #make(
    { task, template }: Materials,
    { limits, mounts, reach }: { limits: Limits; mounts: readonly Mount[]; reach: Reach },
  ): Promise<Made> {
    const { backend, context } = this.#tools;
    const since = performance.now();
    const sandbox = await backend.create({
      id: `${this.#work.trial}-${this.#lease}`.slice(-100),
      ...baseOf(task),
      image: template.value.image,
      mounts,
      scratch: scratchVolumes(context.site.sandbox, this.#work.overrides ?? { scratch: [] }),
      limits,
      network: reach.network,
    });
    context.metrics.started(template.value.image.kind, performance.now() - since);
    try {
      const { seal, notes } = template.value;
      const proof = await proofOf(sandbox, context.records, backend);
      return {
        sandbox,
        proof: {
          ...proof,
          ...(seal === undefined ? {} : { seal }),
          reachable: backend.isInsecure ? "whatever this host reaches" : reach.reachable,
          notes: [...notes, ...reach.notes, ...userNotes(task)],
        },
      };
    } catch (error) {
      await sandbox.destroy();
      throw error;
    }
  }

  async #ready(
    { task, harness }: Materials,
    sandbox: Sandbox,
    facts: Omit<HarnessFacts, "token">,
    user: SandboxUser,
  ): Promise<void> {
    await harness.install(sandbox, task.image, facts);
    const { healthcheck } = task.task.environment;
    if (healthcheck === undefined) return;
    await waitUntilHealthy(sandbox, healthcheck, {
      environment: facts.environment,
      user,
      clock: this.#tools.context.clock,
      signal: this.#signal,
    });
  }

  /** What is done later than the stage allows is undone by `undo` (U2). */
  async #withinSetup<T>(work: Promise<T>, undo?: (late: T) => void | Promise<void>): Promise<T> {
    const limitMs = this.#work.setupTimeoutMs || DEFAULT_SETUP_TIMEOUT_MS;
    const leftMs = limitMs - this.#stages.spentMs(Stage.SETUP);
    let isLate = false;
    if (undo !== undefined) work.then((value) => (isLate ? undo(value) : undefined)).catch(() => undefined);
    try {
      return await withinTime(
        this.#tools.context.clock,
        leftMs,
        `rollout.setupTimeoutMs is ${limitMs}`,
        work,
      );
    } catch (error) {
      isLate = true;
      throw error;
    }
  }
}

/** A user of the task's that is neither root nor the owner of the work tree. */
function userNotes({ task }: ShelvedTask): string[] {
  const { user } = task.agent;
  if (user === undefined || ["root", "0", "agent", "1000"].includes(user)) return [];
  return [`agent.user is ${user}; the agent runs as the owner of the work tree`];
}

function stageTimeout(message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_STAGE_TIMEOUT", message });
}
