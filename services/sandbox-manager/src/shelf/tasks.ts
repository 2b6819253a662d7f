/**
 * Owns tasks as sandboxes need them: directory checked against its digest, workspace and hidden tests stored as
 * trees, the gold solution as a patch. Prepared once per task and digest, shared by its trials.
 * Does not grade, and never mixes tests or solution into an agent's sandbox (DESIGN §7).
 */
import { MortiseError, type SiteConfig, type TaskRef } from "@mortise/contracts";
import { loadIndexedTask, type Task } from "@mortise/tasks";
import { type Image, type SandboxBackend, type Tree, WORKSPACE } from "../backend/types.js";
import { BASE_ENVIRONMENT } from "../environment.js";
import { limitsFor, patchLimits } from "../limits.js";
import type { Patch } from "../patch/patch.js";
import { Shelf } from "./shelf.js";

/** What an agent's sandbox of a task is made of. */
export interface ShelvedTask {
  readonly task: Task;
  /** What the directory was when it was prepared; nothing of another state of it may be used. */
  readonly digest: string;
  readonly image: Image;
  readonly workspace: Tree;
}

export const TESTS_TARGET = "/tests";
const SOLUTION_TARGET = "/solution";
const SOLUTION_TIMEOUT_MS = 60_000;

export class TaskShelf {
  readonly #backend: SandboxBackend;
  readonly #site: SiteConfig;
  readonly #tasks = new Shelf<ShelvedTask>();
  readonly #tests = new Shelf<Tree>();
  readonly #solutions = new Shelf<Patch>();
  #nSolutions = 0;

  constructor(backend: SandboxBackend, site: SiteConfig) {
    this.#backend = backend;
    this.#site = site;
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
    const { repository, workdir } = task.environment;
    if (repository === undefined || workdir !== WORKSPACE)
      throw new MortiseError({
        code: "MORTISE_TASK_INVALID",
        message: `${task.directory}: only tasks with environment/repository and workdir ${WORKSPACE} can be run.`,
      });
    const workspace = await this.#backend.prepareTree({ kind: "directory", directory: repository });
    return { task, digest: ref.digest, workspace, image: await this.#backend.prepareImage({ kind: "host" }) };
  }

  async #solve({ task, image, workspace }: ShelvedTask): Promise<Patch> {
    if (task.solution === undefined)
      throw new MortiseError({ code: "MORTISE_TASK_INVALID", message: `${task.directory} has no solution.` });
    const { directory, env } = task.solution;
    const limits = limitsFor(this.#site.sandbox, task, undefined);
    const sandbox = await this.#backend.create({
      id: `solution-${process.pid}-${++this.#nSolutions}`,
      image,
      workspace,
      mounts: [
        { tree: await this.#backend.prepareTree({ kind: "directory", directory }), target: SOLUTION_TARGET },
      ],
      limits,
      network: { kind: "none" },
    });
    try {
      const { outcome, stderr } = await sandbox.exec({
        argv: ["sh", `${SOLUTION_TARGET}/solve.sh`],
        environment: { ...BASE_ENVIRONMENT, WORKSPACE, ...task.environment.env, ...env },
        timeoutMs: SOLUTION_TIMEOUT_MS,
      });
      if (outcome.kind !== "exited" || outcome.code !== 0)
        throw new MortiseError({
          code: "MORTISE_TASK_INVALID",
          message: `${task.directory}: solution/solve.sh: ${JSON.stringify(outcome)} ${Buffer.from(stderr.bytes)}`,
        });
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
