/**
 * Owns one command in a pod: a request to the helper, its streams, and how it ended. Does not decide about timeouts
 * and limits of the sandbox.
 */
import { constants as osConstants } from "node:os";
import { differenceOf } from "../docker/usage-difference.js";
import { OutputCollector } from "../output.js";
import { type Command, type ExecResult, type Outcome, USER_IDS } from "../types.js";
import { type Counters, usageOf } from "./counters.js";
import { type HelperCall, HelperLost, type HelperResult, type PodHelper } from "./helper.js";
import type { PodEnd } from "./pod-state.js";

export type Ending = "timeout" | "cancelled" | "destroyed";

const SIGNAL_BASE = 128;
const SIGNAL_NAMES = new Map(Object.entries(osConstants.signals).map(([name, number]) => [number, name]));
/** How long the helper may take to kill what it started, before it is given up. */
const KILL_PATIENCE_MS = 10_000;
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export interface CommandFacts {
  readonly helper: PodHelper;
  readonly command: Command;
  readonly workdir: string;
  /** Of the image. */
  readonly environment: Readonly<Record<string, string>>;
  readonly outputBytes: number;
  /** How the pod ended, when it has; asked once the helper is lost. */
  readonly podEnd: () => Promise<PodEnd | undefined>;
}

export class PodCommand {
  readonly #facts: CommandFacts;
  readonly #stdout: OutputCollector;
  readonly #stderr: OutputCollector;
  #ending: Ending | undefined;
  #call: HelperCall | undefined;
  #begun: Counters | undefined;
  /** As far as they are known before there is a result. */
  #last: Counters | undefined;
  #patience: NodeJS.Timeout | undefined;

  constructor(facts: CommandFacts) {
    this.#facts = facts;
    this.#stdout = new OutputCollector(facts.outputBytes);
    this.#stderr = new OutputCollector(facts.outputBytes);
  }

  /** Why it ends; the first reason given is the one reported. */
  mark(ending: Ending): void {
    this.#ending ??= ending;
  }

  /** What the pod's counters were just before it is ended with everything else: its helper says nothing more. */
  measured(counters: Counters): void {
    this.#last = counters;
  }

  /** Kills it and what it started. */
  end(ending: Ending): void {
    this.mark(ending);
    this.#call?.kill();
    this.#patience ??= setTimeout(() => this.#call?.close(), KILL_PATIENCE_MS);
  }

  /** Never rejects for what the command does. */
  async run(): Promise<ExecResult> {
    const { command } = this.#facts;
    const startedAt = performance.now();
    const abort = () => this.end("cancelled");
    const timer = setTimeout(() => this.end("timeout"), command.timeoutMs);
    command.signal?.addEventListener("abort", abort, { once: true });
    if (command.signal?.aborted) this.mark("cancelled");
    let result: HelperResult | Error;
    try {
      result = this.#ending === undefined ? await this.#run() : new HelperLost("it was not started");
    } catch (error) {
      result = error as Error;
    } finally {
      clearTimeout(timer);
      clearTimeout(this.#patience);
      command.signal?.removeEventListener("abort", abort);
    }
    const last = result instanceof Error ? this.#last : result.counters;
    const usage =
      this.#begun === undefined || last === undefined
        ? {}
        : differenceOf(usageOf(this.#begun), usageOf(last));
    const outcome = this.#ended() ?? (await this.#outcome(result));
    const isKilled = outcome.kind === "signalled" || (outcome.kind === "exited" && outcome.code !== 0);
    const kills = usage.oomKills ?? 0;
    return {
      outcome: isKilled && kills > 0 ? { kind: "out-of-memory", kills } : outcome,
      stdout: this.#stdout.end(),
      stderr: this.#stderr.end(),
      usage,
      wallMs: performance.now() - startedAt,
      isInsecure: false,
    };
  }

  async #run(): Promise<HelperResult> {
    const { helper, command, workdir, environment } = this.#facts;
    const id = USER_IDS[command.user ?? "agent"];
    const variables = { PATH: DEFAULT_PATH, ...environment, ...command.environment };
    const call = await helper.open(
      {
        operation: "run",
        argv: command.argv,
        environment: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
        cwd: command.cwd ?? workdir,
        user: id,
        hasStdin: command.stdin !== undefined,
      },
      {
        ...(command.stdin === undefined ? {} : { input: [command.stdin] }),
        onOutput: (chunk) => {
          this.#stdout.add(chunk);
          command.onStdout?.(chunk);
        },
        onErrors: (chunk) => {
          this.#stderr.add(chunk);
          command.onStderr?.(chunk);
        },
        onBegun: ({ counters }) => {
          this.#begun = counters;
        },
      },
    );
    this.#call = call;
    // It was ended while the stream was being opened.
    if (this.#ending !== undefined) call.kill();
    return call.result;
  }

  async #outcome(result: HelperResult | Error): Promise<Outcome> {
    if (result instanceof HelperLost || (result instanceof Error && this.#call !== undefined)) {
      const end = await this.#facts.podEnd();
      if (end?.isOutOfMemory) return { kind: "out-of-memory", kills: 1 };
      return { kind: "lost", reason: end?.reason ?? result.message };
    }
    if (result instanceof Error) return { kind: "refused", reason: result.message };
    if (result.refused !== undefined) return { kind: "refused", reason: result.refused };
    if (result.error !== undefined) return { kind: "refused", reason: result.error };
    const signal = SIGNAL_NAMES.get(result.signal ?? result.code - SIGNAL_BASE);
    return signal === undefined ? { kind: "exited", code: result.code } : { kind: "signalled", signal };
  }

  #ended(): Outcome | undefined {
    if (this.#ending === undefined) return undefined;
    return this.#ending === "destroyed"
      ? { kind: "lost", reason: "the sandbox was destroyed" }
      : { kind: this.#ending };
  }
}
