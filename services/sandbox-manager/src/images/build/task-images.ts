/**
 * Owns the images of tasks that bring a Dockerfile and name no image: built once by the Docker engine of this host, and
 * handed to the backend. Does not read Dockerfiles (rules.ts), contexts (context.ts) or progress (engine-build.ts).
 *
 * N1  An image's name is a digest over all that goes into it: Dockerfile, context, arguments, bases, network. What has
 *     the name is not built again, by whichever process it was made.
 * N2  Askers of one name share one build. One that fails by the task's own fault is not begun again, and one that
 *     fails otherwise only a few times.
 */
import { createHash } from "node:crypto";
import { createWriteStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import { type Clock, type Log, systemClock } from "@mortise/kernel";
import type { Task } from "@mortise/tasks";
import type Docker from "dockerode";
import { connectEngine, type EngineSettings, engineAddress } from "../../backend/docker/engine.js";
import { explained } from "../../backend/docker/engine-trust.js";
import { ownerMark } from "../../backend/owner.js";
import type { ImageSpec } from "../../backend/types.js";
import { hostPlatform } from "../manifest.js";
import { defaultDockerConfig } from "../registry/credentials.js";
import { DEFAULT_HTTP } from "../registry/http.js";
import type { RegistryOptions } from "../registry/registry-source.js";
import { type ResolvedBase, resolveBase } from "./bases.js";
import { BUILT_LABEL, BUILT_REPOSITORY, inspected, useBuiltImage } from "./built-image.js";
import { type BuildContext, contextArchive, readContext } from "./context.js";
import { type Dockerfile, parseDockerfile } from "./dockerfile.js";
import { buildAtEngine } from "./engine-build.js";
import { buildFailed, causeOf } from "./failure.js";
import { type BuildRules, checkDockerfile, checkTriggers, pinnedDockerfile } from "./rules.js";
import { declaredArguments } from "./variables.js";

export interface TaskImagesOptions {
  readonly backend: string;
  /** Of the backend; images for runc are kept below. */
  readonly stateDirectory: string;
  readonly site: SiteConfig["sandbox"]["images"]["build"];
  /** How registries are asked for base images. */
  readonly registry: Partial<RegistryOptions>;
  readonly log: Log;
  readonly clock?: Clock;
  /** The engine that builds; the one of this host when absent. */
  readonly engine?: EngineSettings;
  /** Ends what is being built. */
  readonly stop?: AbortSignal;
}

/** A build that is fully known but not begun. */
interface Plan {
  readonly task: Task;
  readonly context: BuildContext;
  readonly dockerfile: Dockerfile;
  readonly rules: BuildRules;
  readonly args: Readonly<Record<string, string>>;
  readonly bases: readonly ResolvedBase[];
  /** Lower-case hex sha256 (N1). */
  readonly key: string;
}

/** Changes when equal inputs are built in another way. */
const FORMAT = 1;
const MAX_ATTEMPTS = 3;
const BASES_LABEL = "io.mortise.bases";

export class TaskImages {
  readonly #options: TaskImagesOptions;
  readonly #docker: Docker;
  readonly #clock: Clock;
  readonly #flights = new Map<string, Promise<ImageSpec>>();
  readonly #failures = new Map<string, { error: MortiseError; nAttempts: number }>();
  readonly #waiting: (() => void)[] = [];
  #nRunning = 0;

  constructor(options: TaskImagesOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#docker = connectEngine(engineAddress(options.engine));
  }

  /**
   * Rejects with MORTISE_TASK_INVALID where nothing can build, MORTISE_TASK_BUILD when the task's files are to blame,
   * MORTISE_SANDBOX_IMAGE_BUILD or a registry's error otherwise.
   */
  async get(task: Task): Promise<ImageSpec> {
    await this.#requireBuilder(task);
    const limit = this.#limitOf(task);
    const plan = await this.#planned(task, limit.signal).finally(limit.cancel);
    return this.#shared(plan);
  }

  /** One flight a name (N2). */
  #shared(plan: Plan): Promise<ImageSpec> {
    const { key } = plan;
    const known = this.#flights.get(key);
    if (known !== undefined) return known;
    const earlier = this.#failures.get(key);
    if (earlier !== undefined && (earlier.error.disposition !== "retry" || earlier.nAttempts >= MAX_ATTEMPTS))
      return Promise.reject(earlier.error);
    const flight = this.#inTurn(() => this.#make(plan)).finally(() => this.#flights.delete(key));
    this.#flights.set(key, flight);
    flight.then(
      () => this.#failures.delete(key),
      (error: unknown) => {
        if (error instanceof MortiseError)
          this.#failures.set(key, { error, nAttempts: (earlier?.nAttempts ?? 0) + 1 });
      },
    );
    return flight;
  }

  async #requireBuilder({ directory, environment }: Task): Promise<void> {
    const { backend, engine } = this.#options;
    const address = engineAddress(engine);
    let reason = address.ok ? undefined : address.reason;
    if (backend === "process") reason = "the process backend has no images";
    if (backend === "kubernetes") reason = "nodes of a cluster pull images from registries";
    reason ??= await this.#docker.ping().then(
      () => undefined,
      (error: Error) => `no Docker engine answers (${explained(error)})`,
    );
    if (reason === undefined) return;
    throw new MortiseError({
      code: "MORTISE_TASK_INVALID",
      message: `${directory}: environment.docker_image is absent, and nothing here can build ${path.relative(directory, environment.dockerfile ?? "a Dockerfile")}: ${reason}.`,
      fix: "Start a Docker engine on this host (DOCKER_HOST or /var/run/docker.sock), name a built image in environment.docker_image, or add environment/repository.",
      detail: { field: "environment.docker_image" },
    });
  }

  async #planned(task: Task, signal: AbortSignal): Promise<Plan> {
    const { site, registry } = this.#options;
    const context = await readContext(task.directory, site.contextBytes);
    const dockerfile = parseDockerfile(context.dockerfile);
    const rules = {
      args: site.args,
      allowUnpinned: site.allowUnpinned,
      hasNetwork: site.network !== "none",
    };
    const uses = checkDockerfile(dockerfile, rules);
    const bases: ResolvedBase[] = [];
    for (const use of uses) {
      if (bases.some(({ reference }) => reference === use.reference)) continue;
      const base = await resolveBase(this.#docker, use.reference, registryOptions(registry), signal);
      checkTriggers(base.triggers, use, rules);
      bases.push(base);
    }
    const declared = declaredArguments(dockerfile.instructions);
    const args = Object.fromEntries(Object.entries(site.args).filter(([name]) => declared.has(name)));
    const key = keyOf({ context, args, bases, network: site.network });
    return { task, context, dockerfile, rules, args, bases, key };
  }

  async #make(plan: Plan): Promise<ImageSpec> {
    const name = `${BUILT_REPOSITORY}:${plan.key}`;
    if ((await inspected(this.#docker, name)) === undefined) await this.#build(plan, name);
    await useBuiltImage(this.#docker, plan.key, ownerMark(this.#options.stateDirectory));
    if (this.#options.backend === "docker") return { kind: "engine", name };
    return { kind: "local", path: await this.#saved(plan, name) };
  }

  async #build(plan: Plan, name: string): Promise<void> {
    const { task, context, dockerfile, rules, args, bases, key } = plan;
    const { site, stateDirectory, log } = this.#options;
    const label = `${BUILT_LABEL}=${ownerMark(stateDirectory)}`;
    const idOf = (reference: string) => bases.find((base) => base.reference === reference)!.imageId;
    const generated = `.mortise-${key.slice(0, 16)}.Dockerfile`;
    const archive = contextArchive(context, [
      { path: generated, content: pinnedDockerfile(dockerfile, rules, idOf, label) },
      { path: ".dockerignore", content: ignoringToo(context, generated) },
    ]);
    const labels = {
      "io.mortise.task": task.id,
      [BASES_LABEL]: JSON.stringify(
        bases.map(({ reference, imageId, digest }) => ({ reference, imageId, digest })),
      ),
    };
    const since = this.#clock.now();
    const limit = this.#limitOf(task);
    const { network, memoryBytes } = site;
    try {
      const build = { archive, dockerfile: generated, name, args, labels, network, memoryBytes };
      const end = await buildAtEngine(this.#docker, build, limit.signal);
      if (end.kind === "failed") {
        const cause = limit.signal.aborted ? "timeout" : causeOf(end.failed);
        const failed = limit.signal.aborted ? { ...end.failed, message: limit.words } : end.failed;
        throw buildFailed(task.id, failed, cause, network);
      }
    } finally {
      limit.cancel();
      archive.destroy();
    }
    log.info({ event: "image.built", task: task.id, image: name, bases, ms: this.#clock.now() - since });
  }

  /** What `docker save` writes of it, for the image store; whole or not there. */
  async #saved({ task, key }: Plan, name: string): Promise<string> {
    const directory = path.join(this.#options.stateDirectory, "built");
    const file = path.join(directory, `${key}.tar`);
    if (existsSync(file)) return file;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const left of readdirSync(directory)) {
      // The state directory has one owner, and a name one flight: what is of another process was never finished.
      if (/^unfinished-/.test(left) && !left.startsWith(`unfinished-${process.pid}-`))
        rmSync(path.join(directory, left), { force: true });
    }
    const unfinished = path.join(directory, `unfinished-${process.pid}-${key}`);
    try {
      const archive = (await this.#docker.getImage(name).get()) as Readable;
      await pipeline(archive, createWriteStream(unfinished, { mode: 0o600 }));
      renameSync(unfinished, file);
    } catch (error) {
      rmSync(unfinished, { force: true });
      const failed = { step: "save", output: [], message: (error as Error).message };
      throw buildFailed(task.id, failed, causeOf(failed), this.#options.site.network);
    }
    return file;
  }

  /** So many at once; the others wait, and their time does not run. */
  async #inTurn<T>(act: () => Promise<T>): Promise<T> {
    if (this.#nRunning >= this.#options.site.concurrency)
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    else this.#nRunning += 1;
    try {
      return await act();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#nRunning -= 1;
      else next();
    }
  }

  #limitOf({ environment }: Task): { signal: AbortSignal; words: string; cancel: () => void } {
    const { timeoutMultiplier } = this.#options.site;
    const ms = environment.buildTimeoutSec * 1000 * timeoutMultiplier;
    const words = `environment.build_timeout_sec times ${timeoutMultiplier} is over (${ms} ms)`;
    const limit = new AbortController();
    const cancel = this.#clock.after(ms, () =>
      limit.abort(
        new MortiseError({
          code: "MORTISE_SANDBOX_IMAGE_BUILD",
          message: `${words}; base images were not there.`,
        }),
      ),
    );
    const { stop } = this.#options;
    const signal = stop === undefined ? limit.signal : AbortSignal.any([limit.signal, stop]);
    return { signal, words, cancel };
  }
}

function keyOf(of: {
  context: BuildContext;
  args: Readonly<Record<string, string>>;
  bases: readonly ResolvedBase[];
  network: string;
}): string {
  const parts = {
    format: FORMAT,
    platform: hostPlatform(),
    context: of.context.digest,
    // The Dockerfile is in the context; its bases are what its names meant now.
    bases: of.bases.map(({ reference, imageId }) => [reference, imageId]),
    args: Object.entries(of.args).sort(([a], [b]) => (a < b ? -1 : 1)),
    network: of.network,
  };
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** The Dockerfile that is really built is read by the builder and copied by nobody. */
function ignoringToo({ ignoreFile }: BuildContext, generated: string): string {
  return `${ignoreFile ?? ".dockerignore"}\n${generated}\n`;
}

function registryOptions(given: Partial<RegistryOptions>): RegistryOptions {
  return {
    rewrite: given.rewrite ?? [],
    dockerConfig: given.dockerConfig ?? defaultDockerConfig(),
    http: given.http ?? DEFAULT_HTTP,
  };
}
