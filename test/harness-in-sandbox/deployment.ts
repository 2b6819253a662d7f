/**
 * Owns the deployment of the suite: the harnesses of its site file, and one run a trial, with everything recorded of it.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  filter,
  type HarnessSettings,
  MetricsRecordSchema,
  type SandboxReport,
  SandboxReportSchema,
  type Verdict,
  VerdictSchema,
} from "@mortise/contracts";
import { readAll } from "../../apps/cli/src/records/run-records.js";
import { DeployedSite } from "../../apps/cli/test/site/deployed-site.js";

/** Beyond what any harness sends here. */
const WINDOW_TOKENS = 400_000;
const SITE_MEMORY_BYTES = 4 * 1024 ** 3;
const SITE_DISK_BYTES = 1024 ** 3;

export interface DeploymentWish {
  /** Directory of tasks with their index. */
  readonly tasks: string;
  readonly harness: Readonly<Record<string, HarnessSettings>>;
  /** Every run there will be. */
  readonly runs: readonly string[];
  readonly backend: "runc" | "docker";
  /** The [sandbox.docker] table, of the engine of the docker backend; the one of this host when absent. */
  readonly engine?: object;
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
  readonly #site: DeployedSite;

  private constructor(site: DeployedSite) {
    this.#site = site;
  }

  static async start({ tasks, harness, runs, backend, engine }: DeploymentWish): Promise<Deployment> {
    const sandbox = {
      backend,
      ...(engine === undefined ? {} : { docker: engine }),
      cpus: 2,
      memoryBytes: SITE_MEMORY_BYTES,
      diskBytes: SITE_DISK_BYTES,
      pids: 512,
    };
    const wish = { suite: "harnesses", tasks, harness, sandbox, runs, windowTokens: WINDOW_TOKENS };
    return new Deployment(await DeployedSite.start(wish));
  }

  /** Runs one trial of the only task in a split to its verdict. */
  async runTrial({ run, harness, split, script, rollout = {} }: TrialWish): Promise<TrialRecord> {
    const common = {
      harness,
      maxTokensPerTurn: 8_192,
      maxTurns: 40,
      maxPromptTokens: 20_000_000,
      agentTimeoutMs: 600_000,
      setupTimeoutMs: 120_000,
      maxRetries: 0,
    };
    await this.#site.begin({ run, split, script, rollout: { ...common, ...rollout }, attempts: 1 });
    await this.#site.finished(run);
    return this.#recordOf(run);
  }

  stop(): Promise<void> {
    return this.#site.stop();
  }

  async #recordOf(run: string): Promise<TrialRecord> {
    const found = { solved: 0, invalid: 0 };
    const reports: SandboxReport[] = [];
    const verdicts: Verdict[] = [];
    const { bus } = this.#site;
    await readAll(bus, "METRICS", filter.metrics(run), MetricsRecordSchema, ({ record }) => {
      if (record.case === "evaluation")
        Object.assign(found, { solved: record.value.solved, invalid: record.value.invalid });
    });
    await readAll(bus, "TRIALS", filter.trialSandboxes(run), SandboxReportSchema, (report) => {
      reports.push(report);
    });
    await readAll(bus, "REWARDS", filter.rewards(run), VerdictSchema, (verdict) => {
      verdicts.push(verdict);
    });
    return { ...found, reports, verdict: verdicts[0], ended: await this.#endedLine(run) };
  }

  async #endedLine(run: string): Promise<TrialRecord["ended"]> {
    const log = await readFile(join(this.#site.paths.logs, "sandbox-manager.log"), "utf8");
    const line = log.split("\n").find((one) => one.includes('"trial.ended"') && one.includes(`"${run}"`));
    return line === undefined ? undefined : JSON.parse(line);
  }
}
