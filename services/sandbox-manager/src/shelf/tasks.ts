/**
 * Owns tasks as sandboxes need them: directory checked against its digest, image fetched, workspace and hidden tests
 * stored as trees, the gold solution as a patch. Prepared once per task and digest, shared by its trials.
 * Does not grade, and never mixes tests or solution into an agent's sandbox (DESIGN §7).
 */
import { MortiseError, type SiteConfig, type TaskRef } from "@mortise/contracts";
import { type Clock, systemClock } from "@mortise/kernel";
import {
  type HostVariables,
  loadIndexedTask,
  resolveVariables,
  type Task,
  type TaskRole,
  type Variables,
  withoutSecrets,
} from "@mortise/tasks";
import type { Image, ImageSpec, SandboxBackend, SandboxSpec, SandboxUser, Tree } from "../backend/types.js";
import { environmentOf } from "../environment.js";
import { limitsFor, patchLimits } from "../limits.js";
import type { Patch } from "../patch/patch.js";
import { Shelf } from "./shelf.js";
import { imageOf, notBuilt } from "./task-image.js";
import { withinTime } from "./within-time.js";

/** What an agent's sandbox of a task is made of. */
export interface ShelvedTask {
  /** Its `environment.env` holds no template any more. */
  readonly task: Task;
  /** What the directory was when it was prepared; nothing of another state of it may be used. */
  readonly digest: string;
  readonly image: Image;
  readonly workspace: Tree;
  /** Absolute path of the workspace inside. */
  readonly workdir: string;
  /** Values to be kept out of logs, reports and errors. */
  readonly secrets: readonly string[];
}

/** The part of a sandbox's specification that is the task's. */
export function baseOf({
  image,
  workspace,
  workdir,
}: ShelvedTask): Pick<SandboxSpec, "image" | "workspace" | "workdir"> {
  return { image, workspace, workdir };
}

/**
 * Who a role of the task is inside. Without a wish: the owner of a work tree we laid down, or root where the tree is
 * the image's own and belongs to whoever built it, as the image's own default mostly is.
 */
export function userOf({ task }: ShelvedTask, { user }: TaskRole): SandboxUser {
  if (user === undefined) return task.environment.repository === undefined ? "root" : "agent";
  return user === "root" || user === "0" ? "root" : "agent";
}

export const TESTS_TARGET = "/tests";
const SOLUTION_TARGET = "/solution";
const SOLUTION_TIMEOUT_MS = 60_000;

export class TaskShelf {
  readonly #backend: SandboxBackend;
  readonly #site: SiteConfig;
  readonly #clock: Clock;
  readonly #host: HostVariables;
  readonly #build: (task: Task) => Promise<ImageSpec>;
  readonly #tasks = new Shelf<ShelvedTask>();
  readonly #tests = new Shelf<Tree>();
  readonly #solutions = new Shelf<Patch>();
  #nSolutions = 0;

  /** @param build makes the image of a task that has only a Dockerfile */
  constructor(backend: SandboxBackend, site: SiteConfig, clock: Clock = systemClock, build = notBuilt) {
    this.#backend = backend;
    this.#site = site;
    this.#clock = clock;
    this.#build = build;
    this.#host = { environment: process.env, allowed: site.sandbox.taskVariables };
  }

  /** The variables a caller got from a task file, without templates. Throws MORTISE_TASK_INVALID. */
  resolved(variables: Variables, field: string): Variables {
    return resolveVariables(variables, this.#host, field).values;
  }

  /**
   * Resolves when the image of a task that has only a Dockerfile is built; undefined where `get` has nothing to build.
   * Rejects as the builder does; throws as `get` does.
   */
  building(ref: TaskRef | undefined): Promise<unknown> | undefined {
    if (ref === undefined || this.#tasks.has(keyOf(ref))) return undefined;
    const task = loadIndexedTask(this.#site.tasks.directory, ref);
    return imageOf(task) === undefined ? this.#build(task) : undefined;
  }

  /** Rejects with MORTISE_TASK_UNKNOWN, MORTISE_TASK_DIGEST or MORTISE_TASK_INVALID. */
  get(ref: TaskRef | undefined): Promise<ShelvedTask> {
    if (ref === undefined)
      throw new MortiseError({ code: "MORTISE_TASK_UNKNOWN", message: "no task is named" });
    return this.#tasks.get(keyOf(ref), () => this.#prepare(ref));
  }

  /**
   * The hidden tests, to be mounted where a trial is graded and nowhere else.
   * Rejects with MORTISE_TASK_DIGEST when the directory is no longer what the task was prepared from.
   */
  tests({ task, digest }: ShelvedTask): Promise<Tree> {
    const { id, tests } = task;
    return this.#tests.get(keyOf({ id, digest }), async () => {
      const tree = await this.#backend.prepareTree({ kind: "directory", directory: tests.directory });
      loadIndexedTask(this.#site.tasks.directory, { id, digest });
      return tree;
    });
  }

  /** What the task's own solution changes, found by running it in a sandbox. */
  solution(shelved: ShelvedTask): Promise<Patch> {
    const { task, digest } = shelved;
    return this.#solutions.get(keyOf({ id: task.id, digest }), () => this.#solve(shelved));
  }

  async #prepare(ref: TaskRef): Promise<ShelvedTask> {
    const task = loadIndexedTask(this.#site.tasks.directory, ref);
    const { environment } = task;
    const own = resolveVariables(environment.env, this.#host, "environment.env");
    const spec = imageOf(task) ?? (await this.#build(task));
    const image = await withinTime(
      this.#clock,
      environment.buildTimeoutSec * 1000,
      `environment.build_timeout_sec of ${task.id}`,
      this.#backend.prepareImage(spec),
    );
    const workdir = environment.workdir ?? image.defaults.workdir;
    if (workdir === undefined || workdir === "/")
      throw new MortiseError({
        code: "MORTISE_TASK_INVALID",
        message: `${task.directory}: environment.workdir is absent, and the image names no directory to work in.`,
        fix: "Set environment.workdir to the directory of the work tree inside the image.",
        detail: { field: "environment.workdir" },
      });
    const workspace = await this.#workspace(task, image, workdir);
    return {
      task: { ...task, environment: { ...environment, env: own.values } },
      digest: ref.digest,
      image,
      workspace,
      workdir,
      secrets: own.secrets,
    };
  }

  async #workspace({ directory, environment }: Task, image: Image, workdir: string): Promise<Tree> {
    const { repository } = environment;
    if (repository !== undefined)
      return this.#backend.prepareTree({ kind: "directory", directory: repository });
    try {
      return await this.#backend.readTree(image, workdir);
    } catch (cause) {
      if (!(cause instanceof MortiseError) || cause.code !== "MORTISE_SANDBOX_SETUP") throw cause;
      // Not the host's failure: another look would find the same.
      throw new MortiseError({
        code: "MORTISE_TASK_INVALID",
        message: `${directory}: environment.workdir: ${cause.message}`,
        fix: "Set environment.workdir to the directory of the work tree inside the image, not to a link to it.",
        detail: { field: "environment.workdir" },
        cause,
      });
    }
  }

  async #solve(shelved: ShelvedTask): Promise<Patch> {
    const { task, workdir } = shelved;
    if (task.solution === undefined)
      throw new MortiseError({ code: "MORTISE_TASK_INVALID", message: `${task.directory} has no solution.` });
    const { directory, env } = task.solution;
    const own = resolveVariables(env, this.#host, "solution.env");
    const limits = limitsFor(this.#site.sandbox, task);
    const sandbox = await this.#backend.create({
      id: `solution-${process.pid}-${++this.#nSolutions}`,
      ...baseOf(shelved),
      mounts: [
        {
          source: await this.#backend.prepareTree({ kind: "directory", directory }),
          target: SOLUTION_TARGET,
        },
      ],
      limits,
      network: { kind: "none" },
    });
    try {
      const { outcome, stderr } = await sandbox.exec({
        argv: ["sh", `${SOLUTION_TARGET}/solve.sh`],
        environment: {
          ...environmentOf(shelved.image),
          WORKSPACE: workdir,
          ...task.environment.env,
          ...own.values,
        },
        user: userOf(shelved, task.agent),
        timeoutMs: SOLUTION_TIMEOUT_MS,
      });
      if (outcome.kind !== "exited" || outcome.code !== 0) {
        const said = withoutSecrets(`${Buffer.from(stderr.bytes)}`, [...shelved.secrets, ...own.secrets]);
        throw new MortiseError({
          code: "MORTISE_TASK_INVALID",
          message: `${task.directory}: solution/solve.sh: ${JSON.stringify(outcome)} ${said}`,
        });
      }
      await sandbox.quiesce();
      return await sandbox.diff(patchLimits(limits));
    } finally {
      await sandbox.destroy();
    }
  }
}

function keyOf(ref: Pick<TaskRef, "id" | "digest">): string {
  return `${ref.id}@${ref.digest}`;
}
