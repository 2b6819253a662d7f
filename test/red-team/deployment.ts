/**
 * Owns the deployment of the suite: runc as the sandbox backend, and runs in which one scripted harness has one trial at
 * each task, with everything recorded of them.
 */
import {
  filter,
  type SandboxReport,
  SandboxReportSchema,
  TrialState,
  type TrialTransition,
  TrialTransitionSchema,
  type Verdict,
  VerdictSchema,
} from "@mortise/contracts";
import { type Bus, findServices } from "@mortise/kernel";
import { readAll } from "../../apps/cli/src/records/run-records.js";
import { DeployedSite } from "../../apps/cli/test/site/deployed-site.js";

const WINDOW_TOKENS = 20_000;
/** Says one word, whatever is asked. */
const SCRIPT = [
  { format: "mortise.engine-script", schema: 1 },
  { text: "Done.<|im_end|>", when: {}, times: "always" },
].map((line) => JSON.stringify(line));

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
  readonly #site: DeployedSite;

  private constructor(site: DeployedSite) {
    this.#site = site;
  }

  static async start(
    tasks: string,
    harnesses: readonly Harness[],
    runs: readonly string[],
  ): Promise<Deployment> {
    const site = await DeployedSite.start({
      suite: "red-team",
      tasks,
      runs,
      harness: Object.fromEntries(harnesses.map((harness) => [harness.name, settingsOf(harness)])),
      sandbox: { backend: "runc", cpus: 2, memoryBytes: 1024 ** 3, diskBytes: 512 * 1024 ** 2, pids: 256 },
      windowTokens: WINDOW_TOKENS,
    });
    return new Deployment(site);
  }

  get bus(): Bus {
    return this.#site.bus;
  }

  /** host:port of the proxy's model API. */
  async modelAddress(): Promise<string> {
    const [proxy] = await findServices(this.bus, "proxy");
    return proxy!.facts.modelAddress!;
  }

  /** One trial at every task of a split, to their verdicts. @returns the records by task */
  async run({ run, harness, split, tasks }: RunWish): Promise<ReadonlyMap<string, TrialRecord>> {
    const rollout = {
      harness,
      agentTimeoutMs: 60_000,
      setupTimeoutMs: 300_000,
      verifyTimeoutMs: 600_000,
      maxRetries: 1,
    };
    await this.#site.begin({ run, split, script: SCRIPT, rollout, attempts: tasks });
    await this.#site.finished(run);
    return this.#recordsOf(run);
  }

  stop(): Promise<void> {
    return this.#site.stop();
  }

  async #recordsOf(run: string): Promise<ReadonlyMap<string, TrialRecord>> {
    const closed: TrialTransition[] = [];
    const verdicts = new Map<string, Verdict>();
    const reports = new Map<string, SandboxReport[]>();
    const { bus } = this;
    await readAll(bus, "TRIALS", filter.trialStates(run), TrialTransitionSchema, (transition) => {
      if (transition.state === TrialState.CLOSED) closed.push(transition);
    });
    await readAll(bus, "TRIALS", filter.trialSandboxes(run), SandboxReportSchema, (report) => {
      reports.set(report.trial, [...(reports.get(report.trial) ?? []), report]);
    });
    await readAll(bus, "REWARDS", filter.rewards(run), VerdictSchema, (verdict) => {
      verdicts.set(verdict.trial, verdict);
    });
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
