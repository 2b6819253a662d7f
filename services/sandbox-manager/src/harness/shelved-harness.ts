/**
 * Owns one harness on one trial: what is mounted for it, what is written before it starts, its command, how its
 * end is understood, and its transcript. Knows nothing of what a harness says to the model.
 *
 * H1  The session token is in the command's environment and nowhere else; files are the same without it.
 * H2  Nothing is installed in a sandbox: runtime and interpreters are mounted read-only.
 */
import type { HarnessEnd, Launch } from "@mortise/harness";
import { STANDARD_PATH, TOOLBOX } from "@mortise/harness";
import type { Command, ExecResult, Image, Mount, Sandbox, SandboxUser } from "../backend/types.js";
import { MODEL_PORT } from "../backend/types.js";
import { Shelf } from "../shelf/shelf.js";
import { requireFit, type Wants } from "./fit.js";
import { homeArchive } from "./home.js";
import { COMMAND_HOME, HARNESS_HOME, HARNESS_TARGET } from "./places.js";
import type { ResolvedHarness } from "./resolved.js";
import { type Transcript, takeTranscript } from "./transcript.js";

/** What differs from trial to trial. */
export interface HarnessFacts {
  readonly token: string;
  readonly model: string;
  /** The task's own. */
  readonly instruction: string;
  /** The workspace, as the sandbox sees it. */
  readonly workspace: string;
  /** Of image and task together; what the harness needs itself wins. PATH is kept and added to. */
  readonly environment: Readonly<Record<string, string>>;
  readonly user: SandboxUser;
  /** Origin of the model API as the place sees it; every sandbox's own endpoint when absent. */
  readonly modelUrl?: string;
}

/** What was made ready on the host, once. */
export interface HarnessParts {
  readonly resolved: ResolvedHarness;
  readonly mounts: readonly Mount[];
  /** Undefined when any image will do. */
  readonly wants: Omit<Wants, "path"> | undefined;
}

export class ShelvedHarness {
  readonly #parts: HarnessParts;
  readonly #fits = new Shelf<void>();

  constructor(parts: HarnessParts) {
    this.#parts = parts;
  }

  /** As the site file names it. */
  get name(): string {
    return this.#parts.resolved.name;
  }

  /** Recorded with what it does; "unknown" for a configured command that names none. */
  get version(): string {
    return this.#parts.resolved.adapter.version;
  }

  get mounts(): readonly Mount[] {
    return this.#parts.mounts;
  }

  /**
   * Makes a sandbox ready for the harness's command: asks the image once whether it can run it, and writes the
   * harness's files. Part of setup; also of a template, since nothing here depends on the trial's token (H1).
   * @throws MortiseError MORTISE_HARNESS_UNFIT
   */
  async install(
    sandbox: Pick<Sandbox, "exec" | "putTar">,
    image: Image,
    facts: Omit<HarnessFacts, "token">,
  ): Promise<void> {
    const { wants, resolved } = this.#parts;
    if (wants !== undefined)
      await this.#fits.get(image.digest, () => requireFit(sandbox, { ...wants, path: pathOf(facts) }));
    const { files } = this.#launch({ ...facts, token: "" });
    if (resolved.isInstalled && files.length === 0) return;
    await sandbox.putTar("/", await homeArchive(this.#home, files), facts.user);
  }

  /** Command and environment on one trial. The token is in there: never log the result. */
  command(facts: HarnessFacts): Pick<Command, "argv" | "environment"> {
    const { argv, environment } = this.#launch(facts);
    return {
      argv,
      environment: { ...facts.environment, ...environment, ...this.#parts.resolved.environment },
    };
  }

  /** What its end means, once the process has ended by itself. */
  ending({ outcome, stdout, stderr }: Pick<ExecResult, "outcome" | "stdout" | "stderr">): HarnessEnd {
    return this.#parts.resolved.adapter.ending({
      exitCode: outcome.kind === "exited" ? outcome.code : undefined,
      stdout: Buffer.from(stdout.bytes).toString("utf8"),
      stderr: Buffer.from(stderr.bytes).toString("utf8"),
    });
  }

  /** Its own transcript, from a sandbox that has been quiesced. */
  transcript(sandbox: Pick<Sandbox, "getTar">, secrets: readonly string[]): Promise<Transcript | undefined> {
    const globs = this.#parts.resolved.adapter.transcript;
    return takeTranscript(sandbox, { home: this.#home, globs, secrets });
  }

  get #home(): string {
    return this.#parts.resolved.isInstalled ? COMMAND_HOME : HARNESS_HOME;
  }

  #launch(facts: HarnessFacts): Launch {
    const { adapter, wireApi, contextTokens, maxOutputTokens, isInstalled } = this.#parts.resolved;
    const around = pathOf(facts);
    return adapter.launch({
      runtime: HARNESS_TARGET,
      home: this.#home,
      workspace: facts.workspace,
      modelUrl: facts.modelUrl ?? `http://127.0.0.1:${MODEL_PORT}`,
      key: facts.token,
      model: facts.model,
      wireApi,
      instruction: adapter.instruct(facts.instruction),
      contextTokens,
      maxOutputTokens,
      node: TOOLBOX.node,
      python: TOOLBOX.python,
      path: isInstalled ? around : `${around}:${TOOLBOX.programs}`,
    });
  }
}

function pathOf({ environment }: Pick<HarnessFacts, "environment">): string {
  return environment.PATH ?? STANDARD_PATH;
}
