/**
 * Owns the build of one task's image: what it is built from, its row in the table of states, and the image written
 * into the task. Does not choose tasks and does not report.
 *
 * W1  A task is changed only after its image is there, and the row that says so is written after that: whatever is
 *     broken off in between is begun again and ends the same.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import { createLog } from "@mortise/kernel";
import type { TaskImages } from "@mortise/sandbox-manager";
import { digestOfFiles, loadTask, type Task, taskDigest } from "@mortise/tasks";
import {
  type BaseImages,
  type BuildState,
  buildCauseOf,
  buildInputs,
  type InstallPlan,
  installPlanOf,
  isWorthRetrying,
  PACK,
  readBuildState,
  withDockerImage,
  writeBuildState,
  writeRepositoryPack,
} from "@mortise/tasks/build";
import { note } from "../output.js";

export interface BuildPlan {
  readonly from: BuildState["from"];
  readonly bases: BaseImages;
  /** Absolute path, or the start of a URL. */
  readonly repositories: string;
  readonly site: SiteConfig["sandbox"]["images"]["build"];
  readonly timeoutSec?: number;
  readonly again: boolean;
}

export interface TaskBuild {
  readonly kind: "built" | "kept" | "failed" | "passed-over";
  /** Absent for what is passed over. */
  readonly row?: BuildState;
}

/** Below the tasks: archives as `docker save` writes them. */
const IMAGES = "images";
const OURS = /^docker-archive:\.\.\/images\/built\/(?<key>[0-9a-f]{64})\.tar:/;
const MAX_MESSAGE = 4000;
const DEFAULT_WORKDIR = "/testbed";

/** What a build reads of a task. */
interface Source {
  readonly inputs: string;
  readonly install?: InstallPlan;
}

export class TaskBuilder {
  readonly #root: string;
  readonly #plan: BuildPlan;
  readonly #images: TaskImages;
  readonly #stop: AbortSignal;

  private constructor(root: string, plan: BuildPlan, images: TaskImages, stop: AbortSignal) {
    this.#root = root;
    this.#plan = plan;
    this.#images = images;
    this.#stop = stop;
  }

  static async open(root: string, plan: BuildPlan, stop: AbortSignal): Promise<TaskBuilder> {
    // Loaded when it is needed: it brings the engines' clients and the C library along.
    const { TaskImages } = await import("@mortise/sandbox-manager");
    const stateDirectory = join(root, IMAGES);
    // What is built is marked at the engine as of this directory, which has to be there for that.
    mkdirSync(stateDirectory, { recursive: true });
    const images = new TaskImages({
      // Archives are taken by every backend that runs images of this host.
      backend: "runc",
      stateDirectory,
      site: plan.site,
      registry: {},
      stop,
      log: createLog({ service: "tasks-build", level: "error" }),
    });
    return new TaskBuilder(root, plan, images, stop);
  }

  /** Undefined when an interrupt ended it. Rejects where nothing here can build at all. */
  async build(id: string): Promise<TaskBuild | undefined> {
    const task = loadTask(join(this.#root, id));
    const { from, again } = this.#plan;
    const { dockerImage } = task.environment;
    const isOurs = dockerImage !== undefined && OURS.test(dockerImage);
    if (from === "dockerfile" && dockerImage !== undefined && !isOurs) return { kind: "passed-over" };
    const stored = readBuildState(this.#root, id);
    // An image made from the record is not made anew from a Dockerfile that was never there.
    if (from === "dockerfile" && task.environment.dockerfile === undefined) return keptOr(stored);
    const startedAt = new Date();
    const begun: BuildState = {
      schema: 1,
      task: id,
      from,
      state: "building",
      inputs: "0".repeat(64),
      attempts: 1,
      startedAt: startedAt.toISOString(),
    };
    let row = begun;
    try {
      const source = this.#sourceOf(task);
      const same = stored?.inputs === source.inputs && stored.from === from ? stored : undefined;
      if (same?.state === "built" && this.#stands(same, task)) return { kind: "kept", row: same };
      if (same?.state === "failed" && !again && !isWorthRetrying(same.cause!))
        return { kind: "failed", row: same };
      row = {
        ...begun,
        inputs: source.inputs,
        attempts: (same?.attempts ?? 0) + 1,
        ...before(task, stored, isOurs),
      };
      writeBuildState(this.#root, row);
      const image = await this.#made(task, source);
      row = this.#written(task, row, image, startedAt);
      writeBuildState(this.#root, row);
      note(`built ${id} in ${((row.ms ?? 0) / 1000).toFixed(1)} s`);
      return { kind: "built", row };
    } catch (error) {
      if (this.#stop.aborted) return undefined;
      if (!(error instanceof MortiseError) || hasNoBuilder(error)) throw error;
      row = failedRow(row, error, Date.now() - startedAt.getTime());
      writeBuildState(this.#root, row);
      note(`failed ${id}: ${row.cause}`);
      return { kind: "failed", row };
    }
  }

  #sourceOf(task: Task): Source {
    const { from, bases, site } = this.#plan;
    const settings = { from, network: site.network, allowUnpinned: site.allowUnpinned };
    if (from === "dockerfile") {
      const files = taskDigest(join(task.directory, "environment"));
      return { inputs: buildInputs(files, { ...settings, args: JSON.stringify(site.args) }) };
    }
    const place = join(task.directory, "tests", "config.json");
    const install = installPlanOf(recordAt(place), bases, {
      workdir: task.environment.workdir ?? DEFAULT_WORKDIR,
      place: relative(this.#root, place),
    });
    const { repository, commit } = install;
    return {
      install,
      inputs: buildInputs(digestOfFiles(install.files), { ...settings, repository, commit }),
    };
  }

  async #made(task: Task, { install }: Source): Promise<string> {
    if (install === undefined) return this.#builtIn(task.directory, task);
    const scratch = await mkdtemp(join(tmpdir(), "mortise-tasks-build-"));
    try {
      return await this.#builtIn(await this.#staged(task, install, scratch), task);
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  }

  /** What environment.docker_image is to say. @param directory whose environment is built */
  async #builtIn(directory: string, task: Task): Promise<string> {
    const spec = await this.#images.get(this.#asked(task, directory));
    this.#stop.throwIfAborted();
    if (spec.kind !== "local") throw new TypeError(`an image for runc is ${spec.kind}`);
    const place = relative(task.directory, spec.path);
    const key = /([0-9a-f]{64})\.tar$/.exec(place)![1]!;
    return `docker-archive:${place}:mortise-task:${key}`;
  }

  /** A directory with the plan as its environment, and what the builder must find nothing of in there. */
  async #staged(task: Task, install: InstallPlan, scratch: string): Promise<string> {
    const environment = join(scratch, "environment");
    mkdirSync(environment);
    for (const { path, content } of install.files) writeFileSync(join(environment, path), content);
    for (const hidden of ["tests", "solution"])
      if (existsSync(join(task.directory, hidden)))
        await cp(join(task.directory, hidden), join(scratch, hidden), { recursive: true });
    await writeRepositoryPack(this.#plan.repositories, install, join(environment, PACK), this.#stop);
    return scratch;
  }

  #asked(task: Task, directory: string): Task {
    const { timeoutSec } = this.#plan;
    return {
      ...task,
      directory,
      environment: {
        ...task.environment,
        dockerfile: join(directory, "environment", "Dockerfile"),
        ...(timeoutSec === undefined ? {} : { buildTimeoutSec: timeoutSec }),
      },
    };
  }

  #written(task: Task, row: BuildState, image: string, startedAt: Date): BuildState {
    const path = join(task.directory, "task.toml");
    const partial = join(this.#root, `.partial-${task.id}.toml`);
    writeFileSync(partial, withDockerImage(readFileSync(path, "utf8"), image));
    renameSync(partial, path);
    rmSync(partial, { force: true });
    return {
      ...row,
      state: "built",
      image,
      digestAfter: taskDigest(task.directory),
      ms: Date.now() - startedAt.getTime(),
    };
  }

  /** Whether the archive is there and the task still names it. */
  #stands({ image }: BuildState, task: Task): boolean {
    const key = OURS.exec(image ?? "")?.groups?.key;
    return (
      key !== undefined &&
      task.environment.dockerImage === image &&
      existsSync(join(this.#root, IMAGES, "built", `${key}.tar`))
    );
  }
}

function keptOr(stored: BuildState | undefined): TaskBuild {
  return stored?.state === "built" ? { kind: "kept", row: stored } : { kind: "passed-over" };
}

/** Of the task as its index knows it: before the first image of ours was written into it. */
function before(
  task: Task,
  stored: BuildState | undefined,
  isOurs: boolean,
): Pick<BuildState, "digestBefore" | "replacedImage"> {
  const { dockerImage } = task.environment;
  const interrupted = isOurs && stored?.state === "building" ? stored.digestBefore : undefined;
  const replaced = isOurs ? stored?.replacedImage : dockerImage;
  return {
    digestBefore: interrupted ?? taskDigest(task.directory),
    ...(replaced === undefined ? {} : { replacedImage: replaced }),
  };
}

function recordAt(path: string): Record<string, unknown> {
  if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  throw new MortiseError({
    code: "MORTISE_TASK_RECORD",
    message: `${path} is absent: the task was not imported from a record`,
    fix: "Add environment/Dockerfile and build --from dockerfile.",
    detail: { field: "install_config" },
  });
}

function failedRow(row: BuildState, error: MortiseError, ms: number): BuildState {
  const cause = buildCauseOf(error);
  return {
    ...row,
    state: "failed",
    cause,
    message: error.message.slice(0, MAX_MESSAGE),
    fix: cause === "network" ? "Pass --network bridge, or bring what is fetched in environment/." : error.fix,
    ms,
  };
}

function hasNoBuilder({ code, detail }: MortiseError): boolean {
  return code === "MORTISE_TASK_INVALID" && detail.field === "environment.docker_image";
}
