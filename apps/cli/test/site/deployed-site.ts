/**
 * Owns a deployment on this machine for a suite: nats-server and every service as processes of their own, and runs on it
 * that evaluate version 0 with replies from a script, one after the other. Leaves nothing behind.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { filter, type HarnessSettings, MetricsRecordSchema, RunPhase } from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import { stringify } from "smol-toml";
import { writePolicy } from "../../src/conformance/policy-files.js";
import { provisionNatsServer } from "../../src/provision/nats-server/provision.js";
import { type RunPaths, runPaths } from "../../src/quickstart/run-directory.js";
import { LocalCluster } from "../../src/site/processes/local-cluster.js";
import { projectPaths } from "../../src/site/project-paths.js";

const LOOK_INTERVAL_MS = 200;

export interface SiteWish {
  /** In the name of its directory. */
  readonly suite: string;
  /** Directory of tasks with their index. */
  readonly tasks: string;
  readonly harness: Readonly<Record<string, HarnessSettings>>;
  /** The [sandbox] table. */
  readonly sandbox: object;
  /** Every run there will be. */
  readonly runs: readonly string[];
  /** Of the policy, in tokens. */
  readonly windowTokens: number;
}

export interface EvaluationWish {
  readonly run: string;
  /** Of the task index. */
  readonly split: string;
  /** Lines of a script file. */
  readonly script: readonly string[];
  /** The [rollout] table, without what no suite here wants otherwise. */
  readonly rollout: object;
  readonly attempts: number;
}

export class DeployedSite {
  readonly paths: RunPaths;
  readonly #directory: string;
  readonly #cluster: LocalCluster;
  readonly #checkpoint: string;
  #isStarted = false;

  private constructor(directory: string, paths: RunPaths, cluster: LocalCluster, checkpoint: string) {
    this.#directory = directory;
    this.paths = paths;
    this.#cluster = cluster;
    this.#checkpoint = checkpoint;
  }

  static async start(wish: SiteWish): Promise<DeployedSite> {
    const project = projectPaths();
    const directory = await mkdtemp(join(tmpdir(), `mortise-${wish.suite}-`));
    const nats = await provisionNatsServer({
      cacheDirectory: project.cache,
      environment: { PATH: process.env.PATH },
      onProgress: console.log,
    });
    const paths = runPaths({ ...project, runs: directory }, "deployment");
    await mkdir(paths.directory, { recursive: true });
    const cluster = new LocalCluster({ project, paths, nats, note: console.log });
    await cluster.startBus(wish.runs);
    const site = {
      nats: { url: cluster.natsUrl },
      identity: { directory: paths.identity },
      state: { directory: paths.state },
      tasks: { directory: wish.tasks },
      harness: wish.harness,
      sandbox: wish.sandbox,
    };
    await writeFile(paths.site, stringify(site), { mode: 0o600 });
    const { checkpoint } = await writePolicy(directory, wish.windowTokens);
    return new DeployedSite(directory, paths, cluster, checkpoint);
  }

  get bus(): Bus {
    return this.#cluster.bus;
  }

  /** Begins a run, after the one before has finished. */
  async begin({ run, split, script, rollout, attempts }: EvaluationWish): Promise<void> {
    const engineFile = join(this.#directory, `${run}.jsonl`);
    await writeFile(engineFile, `${script.join("\n")}\n`);
    const runFile = join(this.#directory, `${run}.toml`);
    const config = {
      run: { id: run },
      policy: { checkpoint: this.#checkpoint },
      engine: { kind: "scripted", file: engineFile },
      tasks: { train: split, evaluate: split },
      rollout: { prewarm: 0, ...rollout },
      trainer: { steps: 0 },
      evaluation: { attempts, before: true, after: false },
    };
    await writeFile(runFile, stringify(config));
    if (this.#isStarted) await this.#cluster.switchRun(runFile);
    else await this.#cluster.startServices(runFile);
    this.#isStarted = true;
  }

  /** Resolves when a run has finished; rejects when a process of the site was given up. */
  async finished(run: string): Promise<void> {
    const { bus, fatal } = this.#cluster;
    let isFinished = false;
    const following = await bus.follow({
      stream: "METRICS",
      filters: [filter.metrics(run)],
      from: "first",
      schema: MetricsRecordSchema,
      onMessage: ({ record }) => {
        if (record.case === "phase" && record.value.phase === RunPhase.FINISHED) isFinished = true;
      },
    });
    while (!isFinished) {
      fatal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS));
    }
    await following.stop();
  }

  async stop(): Promise<void> {
    await this.#cluster.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }
}
