/**
 * Owns a deployment on this machine for the suite: nats-server and every service as processes of their own, the
 * harnesses of its site file, and one run a trial. Leaves nothing behind.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  filter,
  type HarnessSettings,
  MetricsRecordSchema,
  RunPhase,
  type SandboxReport,
  SandboxReportSchema,
  type SiteConfig,
  type Verdict,
  VerdictSchema,
} from "@mortise/contracts";
import { stringify } from "smol-toml";
import type { z } from "zod";
import { writePolicy } from "../../apps/cli/src/conformance/policy-files.js";
import { provisionNatsServer } from "../../apps/cli/src/provision/nats-server/provision.js";
import { type RunPaths, runPaths } from "../../apps/cli/src/quickstart/run-directory.js";
import { LocalCluster } from "../../apps/cli/src/site/processes/local-cluster.js";
import { projectPaths } from "../../apps/cli/src/site/project-paths.js";

/** Beyond what any harness sends here. */
const WINDOW_TOKENS = 400_000;
const SITE_MEMORY_BYTES = 4 * 1024 ** 3;
const SITE_DISK_BYTES = 1024 ** 3;
const LOOK_INTERVAL_MS = 200;

export interface DeploymentWish {
  /** Directory of tasks with their index. */
  readonly tasks: string;
  readonly harness: Readonly<Record<string, HarnessSettings>>;
  /** Every run there will be. */
  readonly runs: readonly string[];
  readonly backend: "runc" | "docker";
  /** The engine of the docker backend; the one of this host when absent. */
  readonly engine?: NonNullable<z.input<typeof SiteConfig>["sandbox"]>["docker"];
}

export interface TrialWish {
  readonly run: string;
  /** As the site file names it. */
  readonly harness: string;
  readonly split: string;
  /** Lines of a script file. */
  readonly script: readonly string[];
  /** More keys of the run file's [rollout]. */
  readonly rollout?: object;
}

/** Everything the services recorded of one trial. */
export interface TrialRecord {
  readonly solved: number;
  readonly invalid: number;
  readonly verdict: Verdict | undefined;
  readonly reports: readonly SandboxReport[];
  /** The manager's own line about its end: usage of the sandbox among it. */
  readonly ended: { readonly usage?: { readonly memoryPeakBytes?: number } } | undefined;
}

export class Deployment {
  readonly #directory: string;
  readonly #paths: RunPaths;
  readonly #cluster: LocalCluster;
  readonly #checkpoint: string;
  #isStarted = false;

  private constructor(directory: string, paths: RunPaths, cluster: LocalCluster, checkpoint: string) {
    this.#directory = directory;
    this.#paths = paths;
    this.#cluster = cluster;
    this.#checkpoint = checkpoint;
  }

  static async start({ tasks, harness, runs, backend, engine }: DeploymentWish): Promise<Deployment> {
    const project = projectPaths();
    const directory = await mkdtemp(join(tmpdir(), "mortise-harnesses-"));
    const nats = await provisionNatsServer({
      cacheDirectory: project.cache,
      environment: { PATH: process.env.PATH },
      onProgress: console.log,
    });
    const paths = runPaths({ ...project, runs: directory }, "deployment");
    await mkdir(paths.directory, { recursive: true });
    const cluster = new LocalCluster({ project, paths, nats, note: console.log });
    await cluster.startBus(runs);
    const site = {
      nats: { url: cluster.natsUrl },
      identity: { directory: paths.identity },
      state: { directory: paths.state },
      tasks: { directory: tasks },
      harness,
      sandbox: {
        backend,
        ...(engine === undefined ? {} : { docker: engine }),
        cpus: 2,
        memoryBytes: SITE_MEMORY_BYTES,
        diskBytes: SITE_DISK_BYTES,
        pids: 512,
      },
    };
    await writeFile(paths.site, stringify(site), { mode: 0o600 });
    const { checkpoint } = await writePolicy(directory, WINDOW_TOKENS);
    return new Deployment(directory, paths, cluster, checkpoint);
  }

  /** Runs one trial of the only task in a split to its verdict. */
  async runTrial({ run, harness, split, script, rollout }: TrialWish): Promise<TrialRecord> {
    const engineFile = join(this.#directory, `${run}.jsonl`);
    await writeFile(engineFile, `${script.join("\n")}\n`);
    const runFile = join(this.#directory, `${run}.toml`);
    const wish = { run, harness, split, engineFile, rollout: rollout ?? {} };
    await writeFile(runFile, stringify(this.#runConfig(wish)));
    if (this.#isStarted) await this.#cluster.switchRun(runFile);
    else await this.#cluster.startServices(runFile);
    this.#isStarted = true;
    return this.#follow(run);
  }

  async stop(): Promise<void> {
    await this.#cluster.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** An evaluation of version 0 with one attempt, and no training. */
  #runConfig(wish: Omit<TrialWish, "script"> & { readonly engineFile: string }): object {
    const { run, harness, split, engineFile, rollout } = wish;
    return {
      run: { id: run },
      policy: { checkpoint: this.#checkpoint },
      engine: { kind: "scripted", file: engineFile },
      tasks: { train: split, evaluate: split },
      rollout: {
        harness,
        maxTokensPerTurn: 8_192,
        maxTurns: 40,
        maxPromptTokens: 20_000_000,
        agentTimeoutMs: 600_000,
        setupTimeoutMs: 120_000,
        maxRetries: 0,
        prewarm: 0,
        ...rollout,
      },
      trainer: { steps: 0 },
      evaluation: { attempts: 1, before: true, after: false },
    };
  }

  async #follow(run: string): Promise<TrialRecord> {
    const { bus, fatal } = this.#cluster;
    const found = { solved: 0, invalid: 0, isFinished: false };
    const reports: SandboxReport[] = [];
    const verdicts: Verdict[] = [];
    const followings = await Promise.all([
      bus.follow({
        stream: "METRICS",
        filters: [filter.metrics(run)],
        from: "first",
        schema: MetricsRecordSchema,
        onMessage: ({ record }) => {
          if (record.case === "evaluation")
            Object.assign(found, { solved: record.value.solved, invalid: record.value.invalid });
          if (record.case === "phase" && record.value.phase === RunPhase.FINISHED) found.isFinished = true;
        },
      }),
      bus.follow({
        stream: "TRIALS",
        filters: [filter.trialSandboxes(run)],
        from: "first",
        schema: SandboxReportSchema,
        onMessage: (report) => void reports.push(report),
      }),
      bus.follow({
        stream: "REWARDS",
        filters: [`mortise.v1.reward.${run}.*`],
        from: "first",
        schema: VerdictSchema,
        onMessage: (verdict) => void verdicts.push(verdict),
      }),
    ]);
    while (!found.isFinished) {
      fatal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS));
    }
    await Promise.all(followings.map((following) => following.stop()));
    const { solved, invalid } = found;
    return { solved, invalid, reports, verdict: verdicts[0], ended: await this.#endedLine(run) };
  }

  async #endedLine(run: string): Promise<TrialRecord["ended"]> {
    const log = await readFile(join(this.#paths.logs, "sandbox-manager.log"), "utf8");
    const line = log.split("\n").find((one) => one.includes('"trial.ended"') && one.includes(`"${run}"`));
    return line === undefined ? undefined : JSON.parse(line);
  }
}
