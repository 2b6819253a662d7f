/**
 * Owns a deployment on this machine for the suite: nats-server and every service as processes of their own, runc as
 * the sandbox backend, and runs in which one scripted harness has one trial at each task. Leaves nothing behind.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  filter,
  MetricsRecordSchema,
  RunPhase,
  type SandboxReport,
  SandboxReportSchema,
  TrialState,
  type TrialTransition,
  TrialTransitionSchema,
  type Verdict,
  VerdictSchema,
} from "@mortise/contracts";
import { type Bus, findServices } from "@mortise/kernel";
import { stringify } from "smol-toml";
import { writePolicy } from "../../apps/cli/src/conformance/policy-files.js";
import { provisionNatsServer } from "../../apps/cli/src/provision/nats-server/provision.js";
import { runPaths } from "../../apps/cli/src/quickstart/run-directory.js";
import { LocalCluster } from "../../apps/cli/src/site/processes/local-cluster.js";
import { projectPaths } from "../../apps/cli/src/site/project-paths.js";

const WINDOW_TOKENS = 20_000;
const LOOK_INTERVAL_MS = 200;

/** Everything the services recorded of the one trial at a task. */
export interface TrialRecord {
  readonly trial: string;
  readonly closed: TrialTransition;
  readonly verdict: Verdict | undefined;
  readonly reports: readonly SandboxReport[];
}

export interface Harness {
  readonly name: string;
  /** Holds `<task>.sh` for every task. */
  readonly directory: string;
}

export interface RunWish {
  readonly run: string;
  readonly harness: string;
  /** Of the task index. */
  readonly split: string;
  readonly tasks: number;
}

export class Deployment {
  readonly #directory: string;
  readonly #cluster: LocalCluster;
  readonly #checkpoint: string;
  #isStarted = false;

  private constructor(directory: string, cluster: LocalCluster, checkpoint: string) {
    this.#directory = directory;
    this.#cluster = cluster;
    this.#checkpoint = checkpoint;
  }

  static async start(
    tasks: string,
    harnesses: readonly Harness[],
    runs: readonly string[],
  ): Promise<Deployment> {
    const project = projectPaths();
    const directory = await mkdtemp(join(tmpdir(), "mortise-red-team-"));
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
      harness: Object.fromEntries(harnesses.map((harness) => [harness.name, settingsOf(harness)])),
      sandbox: { backend: "runc", cpus: 2, memoryBytes: 1024 ** 3, diskBytes: 512 * 1024 ** 2, pids: 256 },
    };
    await writeFile(paths.site, stringify(site), { mode: 0o600 });
    const { checkpoint } = await writePolicy(directory, WINDOW_TOKENS);
    return new Deployment(directory, cluster, checkpoint);
  }

  get bus(): Bus {
    return this.#cluster.bus;
  }

  /** host:port of the proxy's model API. */
  async modelAddress(): Promise<string> {
    const [proxy] = await findServices(this.bus, "proxy");
    return proxy!.facts.modelAddress!;
  }

  /** One trial at every task of a split, to their verdicts. @returns the records by task */
  async run(wish: RunWish): Promise<ReadonlyMap<string, TrialRecord>> {
    const engineFile = join(this.#directory, `${wish.run}.jsonl`);
    const script = [
      { format: "mortise.engine-script", schema: 1 },
      { text: "Done.<|im_end|>", when: {}, times: "always" },
    ];
    await writeFile(engineFile, script.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const runFile = join(this.#directory, `${wish.run}.toml`);
    await writeFile(runFile, stringify(this.#runConfig(wish, engineFile)));
    if (this.#isStarted) await this.#cluster.switchRun(runFile);
    else await this.#cluster.startServices(runFile);
    this.#isStarted = true;
    return this.#follow(wish.run);
  }

  async stop(): Promise<void> {
    await this.#cluster.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** An evaluation of version 0 with one attempt a task, and no training. */
  #runConfig({ run, harness, split, tasks }: RunWish, engineFile: string): object {
    return {
      run: { id: run },
      policy: { checkpoint: this.#checkpoint },
      engine: { kind: "scripted", file: engineFile },
      tasks: { train: split, evaluate: split },
      rollout: {
        harness,
        agentTimeoutMs: 60_000,
        setupTimeoutMs: 300_000,
        verifyTimeoutMs: 600_000,
        maxRetries: 1,
        prewarm: 0,
      },
      trainer: { steps: 0 },
      evaluation: { attempts: tasks, before: true, after: false },
    };
  }

  async #follow(run: string): Promise<ReadonlyMap<string, TrialRecord>> {
    const { bus, fatal } = this.#cluster;
    let isFinished = false;
    const closed: TrialTransition[] = [];
    const verdicts = new Map<string, Verdict>();
    const reports = new Map<string, SandboxReport[]>();
    const from = "first";
    const followings = await Promise.all([
      bus.follow({
        stream: "METRICS",
        filters: [filter.metrics(run)],
        from,
        schema: MetricsRecordSchema,
        onMessage: ({ record }) => {
          if (record.case === "phase" && record.value.phase === RunPhase.FINISHED) isFinished = true;
        },
      }),
      bus.follow({
        stream: "TRIALS",
        filters: [filter.trialStates(run)],
        from,
        schema: TrialTransitionSchema,
        onMessage: (transition) => {
          if (transition.state === TrialState.CLOSED) closed.push(transition);
        },
      }),
      bus.follow({
        stream: "TRIALS",
        filters: [filter.trialSandboxes(run)],
        from,
        schema: SandboxReportSchema,
        onMessage: (report) => void reports.set(report.trial, [...(reports.get(report.trial) ?? []), report]),
      }),
      bus.follow({
        stream: "REWARDS",
        filters: [filter.rewards(run)],
        from,
        schema: VerdictSchema,
        onMessage: (verdict) => void verdicts.set(verdict.trial, verdict),
      }),
    ]);
    while (!isFinished) {
      fatal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, LOOK_INTERVAL_MS));
    }
    await Promise.all(followings.map((following) => following.stop()));
    // A trial repeated after an infrastructure failure comes later and replaces it.
    return new Map(
      closed.map((transition) => [
        transition.task!.id,
        {
          trial: transition.trial,
          closed: transition,
          verdict: verdicts.get(transition.trial),
          reports: reports.get(transition.trial) ?? [],
        },
      ]),
    );
  }
}

function settingsOf({ directory }: Harness) {
  return {
    directory,
    argv: ["sh", "{runtime}/agent.sh"],
    version: "1.0.0",
    environment: { MODEL_URL: "{model_url}", MODEL_TOKEN: "{token}", TASK: "{instruction}" },
  };
}
