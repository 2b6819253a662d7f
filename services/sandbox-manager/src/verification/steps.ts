/**
 * Owns the steps of a verification, one after the other in one sandbox: what is put in before each, how each ended,
 * what is read after it. How a command ended is what the host saw. Does not read results out of anything.
 *
 * S1  Whatever a step left running is dead before files are put in or read, and before the next step begins.
 * S2  A variable by which an image makes programs load code reaches no step; the task and the step may set it.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  MortiseError,
  type PlacedFiles,
  type RunStep,
  type RunStepResultSchema,
  type TextPatch,
} from "@mortise/contracts";
import type { Command, ExecResult, Sandbox, SandboxUser } from "../backend/types.js";
import { packTar, type TarMember } from "../patch/tar.js";
import { collect } from "./collect.js";
import { applyDiff, type BaseFile, pathsOfDiff, type Rung } from "./text-patch.js";
import { WorkTreeFiles } from "./work-tree-files.js";

export type StepResult = MessageInitShape<typeof RunStepResultSchema>;

export interface AppliedDiff {
  readonly name: string;
  readonly rung: Rung | "";
  readonly failure: string;
}

export interface StepFacts {
  readonly workdir: string;
  /** Of the image, the task and the request. */
  readonly environment: Readonly<Record<string, string>>;
  readonly user: SandboxUser;
  readonly defaultTimeoutMs: number;
  readonly signal: AbortSignal;
  /** On the host, for diffs that are being applied. */
  readonly scratchDirectory: string;
}

export interface StepsEnding {
  readonly steps: readonly StepResult[];
  readonly textPatches: readonly AppliedDiff[];
  /** Set when the sandbox failed under a step: nothing is known of that step. */
  readonly failure?: { readonly code: string; readonly reason: string };
}

/** Variables by which whoever sets them has code run inside other programs (S2). */
const CODE_LOADING_VARIABLES = [
  ...["BASH_ENV", "ENV", "LD_AUDIT", "LD_PRELOAD", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PYTEST_ADDOPTS"],
  ...["PYTEST_PLUGINS", "PYTHONPATH", "PYTHONSTARTUP", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS"],
];

/** Throws MORTISE_SANDBOX_SETUP naming the field of a step that cannot be run. */
export function checkSteps(steps: readonly RunStep[], patches: readonly TextPatch[]): void {
  const names = new Set(patches.map(({ name }) => name));
  for (const [at, { argv, user, putTextPatches, put }] of steps.entries()) {
    if (argv.length === 0) throw wrong(`steps[${at}].argv is empty`);
    if (!["", "agent", "root"].includes(user)) throw wrong(`steps[${at}].user is ${JSON.stringify(user)}`);
    const unknown = putTextPatches.find((name) => !names.has(name));
    if (unknown !== undefined) throw wrong(`steps[${at}].put_text_patches names ${JSON.stringify(unknown)}`);
    for (const { directory, owner } of put) {
      if (!directory.startsWith("/"))
        throw wrong(`steps[${at}].put.directory is ${JSON.stringify(directory)}`);
      if (!["", "agent", "root"].includes(owner))
        throw wrong(`steps[${at}].put.owner is ${JSON.stringify(owner)}`);
    }
  }
}

export class StepRunner {
  readonly #sandbox: Sandbox;
  readonly #facts: StepFacts;
  readonly #files: WorkTreeFiles;
  readonly #diffs = new Map<string, ReadonlyMap<string, BaseFile | undefined>>();
  readonly #applied: AppliedDiff[] = [];

  constructor(sandbox: Sandbox, facts: StepFacts) {
    this.#sandbox = sandbox;
    this.#facts = facts;
    this.#files = new WorkTreeFiles(sandbox, facts);
  }

  /** Applies the diffs to the pristine files, then runs the steps. Nothing may have run in the sandbox yet. */
  async run(steps: readonly RunStep[], patches: readonly TextPatch[]): Promise<StepsEnding> {
    for (const patch of patches) await this.#apply(patch);
    const results: StepResult[] = [];
    for (const step of steps) {
      if (step.putTextPatches.some((name) => !this.#diffs.has(name))) break;
      const result = await this.#step(step);
      const { kind } = result.outcome;
      if (kind === "refused" || kind === "lost" || kind === "cancelled")
        return { steps: results, textPatches: this.#applied, failure: failureOf(result) };
      results.push(await this.#resultOf(step, result));
      if (step.required && !(kind === "exited" && result.outcome.code === 0)) break;
    }
    return { steps: results, textPatches: this.#applied };
  }

  async #apply({ name, diff }: TextPatch): Promise<void> {
    const paths = pathsOfDiff(name, diff);
    const result = await applyDiff(diff, paths, await this.#files.read(paths), this.#facts.scratchDirectory);
    if ("rung" in result) this.#diffs.set(name, result.files);
    this.#applied.push({
      name,
      rung: "rung" in result ? result.rung : "",
      failure: "failure" in result ? result.failure : "",
    });
  }

  async #step(step: RunStep): Promise<ExecResult> {
    for (const place of step.put) await this.#put(place, userNamed(step.user, this.#facts.user));
    for (const name of step.putTextPatches) await this.#files.write(this.#diffs.get(name)!);
    return this.#sandbox.exec(this.#command(step));
  }

  async #put({ directory, owner, files }: PlacedFiles, user: SandboxUser): Promise<void> {
    const members = files.map(
      ({ path, content, executable }): TarMember => ({
        name: path,
        kind: "file",
        mode: executable ? 0o755 : 0o644,
        content,
      }),
    );
    await this.#sandbox.putTar(directory, await packTar(members), userNamed(owner, user));
  }

  #command(step: RunStep): Command {
    const { environment, user, defaultTimeoutMs, signal } = this.#facts;
    return {
      argv: step.argv as [string, ...string[]],
      environment: { ...environment, ...step.environment },
      user: userNamed(step.user, user),
      timeoutMs: step.timeoutMs || defaultTimeoutMs,
      signal,
      ...(step.cwd === "" ? {} : { cwd: step.cwd }),
      ...(step.stdin.byteLength > 0 ? { stdin: step.stdin } : {}),
    };
  }

  async #resultOf(step: RunStep, { outcome, stdout, stderr, wallMs }: ExecResult): Promise<StepResult> {
    const files = [];
    for (const place of step.collect) files.push(...(await collect(this.#sandbox, place)));
    return {
      name: step.name,
      ...(outcome.kind === "exited" ? { exitCode: outcome.code } : {}),
      ...(outcome.kind === "signalled" ? { signal: outcome.signal } : {}),
      timedOut: outcome.kind === "timeout",
      outOfMemory: outcome.kind === "out-of-memory",
      stdout: Buffer.from(stdout.bytes),
      stderr: Buffer.from(stderr.bytes),
      outputTruncated: stdout.isTruncated || stderr.isTruncated,
      wallMs: Math.round(wallMs),
      files: files.map((file) => ({ ...file, content: Buffer.from(file.content) })),
    };
  }
}

/** The variables of an image, without those by which others' programs load code (S2). */
export function withoutCodeLoading(environment: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !CODE_LOADING_VARIABLES.includes(name)),
  );
}

function userNamed(name: string, otherwise: SandboxUser): SandboxUser {
  return name === "" ? otherwise : (name as SandboxUser);
}

function failureOf({ outcome }: ExecResult): { code: string; reason: string } {
  switch (outcome.kind) {
    case "refused":
      return { code: "MORTISE_SANDBOX_SETUP", reason: outcome.reason };
    case "lost":
      return { code: "MORTISE_SANDBOX_LOST", reason: outcome.reason };
    default:
      return { code: "MORTISE_SANDBOX_LOST", reason: "the caller went away" };
  }
}

function wrong(message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message: `RunOnceRequest.${message}` });
}
