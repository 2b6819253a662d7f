/**
 * Owns what the tests measure: bundled tasks, a harness that obeys, a policy whose replies are scripted by trial, and a
 * site that is up. Leaves nothing behind.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { filter, TrialState, type TrialTransition, TrialTransitionSchema } from "@mortise/contracts";
import { type Bus, readSiteConfig } from "@mortise/kernel";
import { generateDemoTasks, readTaskIndex, type TaskIndexEntry } from "@mortise/tasks";
import { stringify } from "smol-toml";
import { END_OF_TURN, writePolicy } from "../../apps/cli/src/conformance/policy-files.js";
import { projectPaths } from "../../apps/cli/src/site/project-paths.js";
import { connectAs } from "../../apps/cli/src/site-bus.js";
import { Mortise, mortise } from "./mortise.js";

const WINDOW_TOKENS = 20_000;
const LOOK_INTERVAL_MS = 100;
const HARNESS = new URL("./agent.cjs", import.meta.url);

export const TASKS = 4;
export const ATTEMPTS = 2;

/** `<task>-<attempt>`, as trials of an evaluation are called behind its name. */
export type Attempt = `${number}-${number}`;

/** One reply to one trial: what its agent is told to run, or how the engine fails. */
export interface Reply {
  /** With its retry mark, as in `1-0r1`. */
  readonly trial: string;
  readonly shell?: string;
  readonly fails?: boolean;
}

export class World {
  readonly directory = mkdtempSync(join(tmpdir(), "mortise-evaluation-"));
  readonly tasks = join(this.directory, "tasks");
  readonly siteFile = join(this.directory, "site", "site.toml");
  readonly harness = join(this.directory, "agent.toml");
  checkpoint = "";
  entries: readonly TaskIndexEntry[] = [];
  #site: Mortise | undefined;
  #bus: Bus | undefined;
  readonly #runs: string[] = [];
  #serial = 0;

  async start(): Promise<void> {
    generateDemoTasks(this.tasks, { seed: 1, train: TASKS, heldOut: 0 });
    this.entries = readTaskIndex(this.tasks);
    this.checkpoint = (await writePolicy(this.directory, WINDOW_TOKENS)).checkpoint;
    const agent = join(this.directory, "agent");
    mkdirSync(agent);
    writeFileSync(join(agent, "agent.cjs"), readFileSync(HARNESS));
    writeFileSync(
      this.harness,
      stringify({
        directory: agent,
        argv: ["node", "/opt/harness/agent.cjs"],
        version: "1.0.0",
        environment: { MODEL_URL: "{model_url}", TOKEN: "{token}", INSTRUCTION: "{instruction}" },
        exitCodes: { "3": "proxy-failure" },
      }),
    );
    const given = ["--tasks", this.tasks, "--harness", this.harness];
    const made = await mortise("site", "init", join(this.directory, "site"), ...given);
    if (made.code !== 0) throw new Error(made.stderr);
    this.#site = new Mortise(["site", "up", "--site", this.siteFile]);
    while ((await mortise("site", "status", "--site", this.siteFile)).code !== 0)
      if (this.#site.hasEnded) throw new Error((await this.#site.ended).stderr);
    this.#bus = await connectAs(await readSiteConfig(this.siteFile), "observer");
  }

  async stop(): Promise<void> {
    await this.#bus?.close();
    this.#site?.signal("SIGTERM");
    await this.#site?.ended;
    for (const run of this.#runs) rmSync(this.runDirectory(run), { recursive: true, force: true });
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** An id nobody has had; its directory is removed at the end. */
  newRun(): string {
    const run = `evaluation-test-${process.pid}-${this.#serial++}`;
    this.#runs.push(run);
    return run;
  }

  runDirectory(run: string): string {
    return join(projectPaths().runs, run);
  }

  /** The repair of a task, as a script for the work tree. */
  repair(task: number): string {
    return readFileSync(join(this.tasks, this.entries[task]!.id, "solution", "solve.sh"), "utf8");
  }

  /**
   * A script file: these replies, a repair for each attempt in `solves`, and for every other trial an agent that does
   * nothing.
   * @param delayMs before each reply, so that there is something to interrupt
   */
  script(solves: readonly Attempt[], replies: readonly Reply[] = [], delayMs = 0): string {
    const line = (trial: string | undefined, rest: object) => ({
      when: trial === undefined ? {} : { affinity: `evaluation-${trial}` },
      times: "always",
      firstTokenMs: delayMs,
      ...rest,
    });
    const said = (shell: string) => ({ text: `${shell}${END_OF_TURN}` });
    const lines = [
      { format: "mortise.engine-script", schema: 1 },
      ...replies.map(({ trial, shell = "true", fails = false }) =>
        line(trial, { ...said(shell), ...(fails ? { failAfter: 0 } : {}) }),
      ),
      ...solves.map((attempt) => line(attempt, said(this.repair(Number(attempt.split("-")[0]))))),
      line(undefined, said("true")),
    ];
    const file = join(this.directory, `script-${this.#serial++}.jsonl`);
    writeFileSync(file, lines.map((one) => `${JSON.stringify(one)}\n`).join(""));
    return file;
  }

  protocol(changes: object = {}): string {
    const file = join(this.directory, `protocol-${this.#serial++}.toml`);
    const base = {
      schema: 1,
      name: "test",
      attempts: ATTEMPTS,
      sampling: { maxTokensPerTurn: 4096 },
      limits: { maxTurns: 4, agentTimeoutMs: 120_000, verifyTimeoutMs: 120_000 },
    };
    writeFileSync(file, stringify({ ...base, ...changes }));
    return file;
  }

  /** What every evaluation on the site is told. */
  measured(run: string, script: string): string[] {
    return [
      ...["--checkpoint", this.checkpoint, "--engine", script, "--harness", "agent"],
      ...["--site", this.siteFile, "--run-id", run],
    ];
  }

  rows(run: string, name: string): Record<string, unknown>[] {
    const text = readFileSync(join(this.runDirectory(run), "result", name), "utf8");
    return text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Everything the scheduler has recorded of a run's trials, in order. */
  async transitions(run: string): Promise<TrialTransition[]> {
    const found: TrialTransition[] = [];
    const following = await this.#bus!.follow({
      stream: "TRIALS",
      filters: [filter.trialStates(run)],
      from: "first",
      schema: TrialTransitionSchema,
      onMessage: (transition) => void found.push(transition),
    });
    await following.caughtUp;
    await following.stop();
    return found;
  }

  async closed(run: string): Promise<TrialTransition[]> {
    return (await this.transitions(run)).filter(({ state }) => state === TrialState.CLOSED);
  }

  /** Waits until so many trials of a run have ended while others have not. */
  async untilClosed(run: string, count: number, process: Mortise): Promise<void> {
    while ((await this.closed(run)).length < count) {
      if (process.hasEnded) throw new Error(`it ended first: ${process.stderr}`);
      await sleep(LOOK_INTERVAL_MS);
    }
  }

  hasResult(run: string): boolean {
    return existsSync(join(this.runDirectory(run), "result", "result.json"));
  }
}
