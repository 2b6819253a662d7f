/**
 * Owns the quick start as a sequence: provision, prepare, start, watch, judge, stop. Each step is elsewhere; what
 * is here is their order and what happens when one fails or somebody presses Ctrl-C.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type EvaluationRecord, MortiseError, type RunConfig, RunPhase } from "@mortise/contracts";
import { sleep } from "@mortise/kernel";
import { loadIndexedTask, validateTask } from "@mortise/tasks";
import { stringify } from "smol-toml";
import { assertFreeSpace } from "../free-space.js";
import { writePrivate } from "../provision/identity.js";
import { type NatsServer, provisionNatsServer } from "../provision/nats-server/provision.js";
import { provisionSandboxRuntime } from "../provision/runc.js";
import { type RunRecords, readRunRecords } from "../records/run-records.js";
import { executeInSandbox } from "../sandbox-executor.js";
import { listenForInterrupts } from "../site/interrupts.js";
import { takeOwnership } from "../site/owner-lock.js";
import { LocalCluster } from "../site/processes/local-cluster.js";
import { NATS_PROCESS } from "../site/processes/nats-process.js";
import { NewestManager } from "../site/processes/newest-manager.js";
import { type ProjectPaths, projectPaths } from "../site/project-paths.js";
import { CpuMeter, type Overhead, overheadOf, type Reading } from "./cpu-meter.js";
import { preparePolicy } from "./prepare-policy.js";
import { type DemoTasks, prepareTasks } from "./prepare-tasks.js";
import { ProgressWatch } from "./progress.js";
import { controlRun, type QuickstartOptions, quickstartRun, REVALIDATED_TASKS } from "./recipe.js";
import { type RunPaths, runPaths } from "./run-directory.js";
import { writeSiteFile } from "./site.js";
import { failedGates, type Summary, summarise } from "./summary.js";
import type { View } from "./view.js";

const REFRESH_MS = 1_000;
const VALIDATIONS_AT_ONCE = 4;

export interface QuickstartResult {
  readonly summary: Summary;
  /** Gates that do not hold, one sentence each. */
  readonly failed: readonly string[];
  readonly overhead: Overhead | undefined;
}

interface Outcome {
  readonly records: RunRecords;
  readonly overhead: Overhead | undefined;
  readonly control: EvaluationRecord | undefined;
}

/** What an earlier start of the same run leaves for the next one. */
interface Carried {
  readonly durationMs: number;
  readonly readings: Readonly<Record<string, Reading>>;
}

/** The options a run was started with. @throws MORTISE_OPERATOR_RUN_UNKNOWN */
export async function optionsOfRun(
  runId: string,
  project: ProjectPaths = projectPaths(),
): Promise<QuickstartOptions> {
  try {
    return JSON.parse(await readFile(runPaths(project, runId).options, "utf8")) as QuickstartOptions;
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_OPERATOR_RUN_UNKNOWN",
      message: `No quick start is called ${runId}.`,
      detail: { field: "--resume" },
      cause,
    });
  }
}

/** Runs or resumes a quick start to its end. Rejects with `Interrupted` after a drain that Ctrl-C asked for. */
export async function quickstart(options: QuickstartOptions, view: View): Promise<QuickstartResult> {
  const project = projectPaths();
  const paths = runPaths(project, options.runId);
  // What can be refused is refused before anything of the run is on disk.
  const run = quickstartRun(options, paths);
  await assertFreeSpace(existsSync(project.runs) ? project.runs : project.root);
  const nats = await provisionNatsServer({
    cacheDirectory: project.cache,
    onProgress: (line) => view.note(line),
  });
  await mkdir(paths.directory, { recursive: true, mode: 0o700 });
  const ownership = await takeOwnership(paths.owner, ({ pid }) => isRunningAlready(pid, options.runId));
  try {
    await writePrivate(paths.options, `${JSON.stringify(options)}\n`);
    return await new QuickstartSession({ options, project, paths, view, run, nats }).run();
  } finally {
    await ownership.release();
  }
}

interface SessionParts {
  readonly options: QuickstartOptions;
  readonly project: ProjectPaths;
  readonly paths: RunPaths;
  readonly view: View;
  readonly run: RunConfig;
  readonly nats: NatsServer;
}

class QuickstartSession {
  readonly #options: QuickstartOptions;
  readonly #project: ProjectPaths;
  readonly #paths: RunPaths;
  readonly #view: View;
  readonly #run: RunConfig;
  readonly #nats: NatsServer;
  readonly #startedAt = performance.now();
  readonly #carryFile: string;
  #carried: Carried = { durationMs: 0, readings: {} };
  #meter = new CpuMeter();
  #stop: AbortSignal = new AbortController().signal;

  constructor({ options, project, paths, view, run, nats }: SessionParts) {
    this.#run = run;
    this.#nats = nats;
    this.#options = options;
    this.#project = project;
    this.#paths = paths;
    this.#view = view;
    this.#carryFile = join(paths.directory, "carried.json");
  }

  async run(): Promise<QuickstartResult> {
    if (existsSync(this.#carryFile))
      this.#carried = JSON.parse(await readFile(this.#carryFile, "utf8")) as Carried;
    this.#meter = new CpuMeter(this.#carried.readings);
    const nats = this.#nats;
    for (const line of nats.notes) this.#view.note(`nats-server: ${line}`);
    this.#view.note(`nats-server ${nats.version} from ${nats.kind === "binary" ? nats.source : "NATS_URL"}`);
    const cluster = new LocalCluster({
      project: this.#project,
      paths: this.#paths,
      nats,
      note: (line) => this.#view.note(line),
    });
    const interrupts = listenForInterrupts(() => cluster.supervisor.killAll());
    this.#stop = AbortSignal.any([cluster.fatal, interrupts.signal]);
    try {
      return await this.#train(cluster);
    } finally {
      this.#view.end();
      await this.#carry();
      await cluster.stop();
      interrupts.dispose();
    }
  }

  async #train(cluster: LocalCluster): Promise<QuickstartResult> {
    const run = this.#run;
    const tasks = await prepareTasks(this.#project.tasks, this.#options.seed);
    await preparePolicy(this.#paths, tasks.train, this.#options.seed);
    this.#stop.throwIfAborted();
    const controlId = `${this.#options.runId}-control`;
    await cluster.startBus(this.#options.control ? [this.#options.runId, controlId] : [this.#options.runId]);
    await this.#writeFiles(cluster, tasks, run);
    await cluster.startServices(this.#paths.run);
    await this.#revalidate(cluster, tasks);

    const trainedSeconds = await this.#follow(cluster, run);
    const records = await readRunRecords(cluster.bus, this.#options.runId);
    const overhead = overheadOf(this.#meter.readings(), records.endedTrials);
    const control = this.#options.control
      ? await this.#trainControl(cluster, controlRun(run, controlId, trainedSeconds))
      : undefined;
    return this.#judge(cluster, run, { records, overhead, control });
  }

  async #writeFiles(cluster: LocalCluster, tasks: DemoTasks, run: RunConfig): Promise<void> {
    const sandbox = await provisionSandboxRuntime({
      cacheDirectory: this.#project.cache,
      onProgress: (line) => this.#view.note(line),
    });
    for (const line of sandbox.notes) this.#view.note(`sandbox: ${line}`);
    this.#view.note(`sandbox backend: ${sandbox.backend}`);
    await writeSiteFile(this.#project, this.#paths, {
      natsUrl: cluster.natsUrl,
      tasksDirectory: tasks.directory,
      sandbox,
    });
    await writeFile(this.#paths.run, stringify(run));
  }

  /** Before trusting any reward: gold must resolve and doing nothing must not, in this machine's own sandboxes. */
  async #revalidate(cluster: LocalCluster, tasks: DemoTasks): Promise<void> {
    const marker = join(this.#paths.directory, "validated");
    if (existsSync(marker)) return;
    const manager = new NewestManager(cluster.presences, cluster.bearer);
    const stride = Math.floor(tasks.index.length / REVALIDATED_TASKS);
    const chosen = tasks.index.filter((_, at) => at % stride === 0).slice(0, REVALIDATED_TASKS);
    const execute = executeInSandbox(() => manager.client(), this.#options.runId, this.#stop);
    const validateNext = async (): Promise<void> => {
      for (let entry = chosen.shift(); entry !== undefined; entry = chosen.shift()) {
        this.#stop.throwIfAborted();
        const { id, isValid, problems } = await validateTask(
          loadIndexedTask(tasks.directory, entry),
          execute,
        );
        if (!isValid) throw invalidTask(id, problems);
      }
    };
    try {
      await Promise.all(Array.from({ length: VALIDATIONS_AT_ONCE }, validateNext));
    } finally {
      manager.close();
    }
    this.#view.note(`${REVALIDATED_TASKS} tasks validated again in the sandbox`);
    await writeFile(marker, "");
  }

  /** Watches a run until it is finished. @returns the seconds its training phase took. */
  async #follow(cluster: LocalCluster, run: RunConfig): Promise<number> {
    const runId = run.run.id;
    const watch = await ProgressWatch.start(cluster, runId);
    try {
      while (!watch.isFinished) {
        await watch.refresh();
        await this.#sample(cluster);
        this.#view.update({
          runId,
          steps: run.trainer.steps,
          elapsedMs: this.#durationMs(),
          progress: watch.current,
          processes: cluster.supervisor.status(),
          stalenessBound: run.async.maxStaleness,
        });
        await Promise.race([watch.finished, sleep(REFRESH_MS, undefined, this.#stop)]);
      }
      return trainingSeconds(watch);
    } finally {
      await watch.stop();
    }
  }

  async #sample(cluster: LocalCluster): Promise<void> {
    await this.#meter.sampleServices(cluster.presences.all());
    const server = cluster.pidOf(NATS_PROCESS);
    if (server !== undefined) this.#meter.sampleProcess(NATS_PROCESS, server);
    this.#meter.sampleSelf();
  }

  async #trainControl(cluster: LocalCluster, run: RunConfig): Promise<EvaluationRecord | undefined> {
    const runFile = join(this.#paths.directory, "control.toml");
    await writeFile(runFile, stringify(run));
    this.#view.note(
      `control: the same start with ${run.warmStart?.extraSeconds.toFixed(0)} s more supervised fine-tuning`,
    );
    await cluster.switchRun(runFile);
    await this.#follow(cluster, run);
    return (await readRunRecords(cluster.bus, run.run.id)).evaluations.get("before");
  }

  async #judge(
    cluster: LocalCluster,
    run: RunConfig,
    { records, overhead, control }: Outcome,
  ): Promise<QuickstartResult> {
    const summary = summarise({
      runId: this.#options.runId,
      seed: this.#options.seed,
      stalenessBound: run.async.maxStaleness,
      records,
      control,
      overheadMsPerTrial: overhead?.perTrialMs ?? null,
      services: cluster.supervisor.status().map(({ name, restarts }) => ({ name, restarts })),
      durationMs: Math.round(this.#durationMs()),
    });
    await writePrivate(this.#paths.summary, `${JSON.stringify({ schema: 1, ...summary })}\n`);
    return { summary, failed: failedGates(summary, records, run.trainer.steps), overhead };
  }

  async #carry(): Promise<void> {
    const carried: Carried = { durationMs: this.#durationMs(), readings: this.#meter.readings() };
    await writePrivate(this.#carryFile, `${JSON.stringify(carried)}\n`);
  }

  #durationMs(): number {
    return this.#carried.durationMs + performance.now() - this.#startedAt;
  }
}

function trainingSeconds(watch: ProgressWatch): number {
  const { phaseStartedAt } = watch.current;
  const from = phaseStartedAt.get(RunPhase.TRAIN);
  const to = phaseStartedAt.get(RunPhase.EVALUATE_AFTER) ?? phaseStartedAt.get(RunPhase.FINISHED);
  return from === undefined || to === undefined ? 0 : (to - from) / 1000;
}

function isRunningAlready(pid: number, runId: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_RUN_EXISTS",
    message: `Process ${pid} is running ${runId}.`,
    fix: "Wait for it or end it, then resume the run.",
    detail: { field: "runId" },
  });
}

function invalidTask(id: string, problems: readonly string[]): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_INVALID",
    message: `${id} does not validate in this machine's sandbox: ${problems.join(" ")}`,
    fix: "Rewards would be wrong. Read the sandbox-manager's log; the same task validates where it was generated.",
    detail: { field: id },
  });
}
