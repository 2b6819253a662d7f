/**
 * Owns one build at a Docker engine: the context sent, the progress read, the end told. The engine's classic builder
 * runs it; its cache of steps is what makes a build that was broken off go on where it was.
 * Knows nothing of the host's environment and sends none of it, no credentials either.
 */
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import type Docker from "dockerode";
import type { FailedStep } from "./failure.js";

export interface EngineBuild {
  readonly archive: Readable;
  /** Path of the Dockerfile in the archive. */
  readonly dockerfile: string;
  /** Repository and tag of the result; it is there only when the build has ended well. */
  readonly name: string;
  readonly args: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly network: string;
  readonly memoryBytes: number;
}

export type BuildEnd = { readonly kind: "built" } | { readonly kind: "failed"; readonly failed: FailedStep };

const LAST_LINES = 20;
const MAX_LINE = 500;
const STEP = /^Step (\d+\/\d+ : .*?)\s*$/s;
/** Beginnings and ends of steps and of what they leave. */
const BUILDERS_OWN = /^(?:Step \d+\/\d+ : | ---> |Removing intermediate container )/;

interface Progress {
  readonly stream?: string;
  readonly error?: string;
}

/** An aborted signal ends it, at the engine too. Rejects with the archive's own error when that breaks off. */
export async function buildAtEngine(
  docker: Docker,
  build: EngineBuild,
  signal: AbortSignal,
): Promise<BuildEnd> {
  const steps = new StepLog();
  const sending = new AbortController();
  const unsent = Promise.withResolvers<never>();
  unsent.promise.catch(() => sending.abort());
  // Otherwise an archive that breaks off would leave the engine waiting for the rest of it.
  build.archive.once("error", unsent.reject);
  const either = AbortSignal.any([signal, sending.signal]);
  const ended = (async (): Promise<string | undefined> => {
    try {
      const answer = (await docker.buildImage(build.archive, optionsOf(build, either))) as Readable;
      const stop = () => answer.destroy(new Error("it was stopped"));
      either.addEventListener("abort", stop, { once: true });
      return await readProgress(answer, steps);
    } catch (error) {
      return (error as Error).message;
    }
  })();
  const error = await Promise.race([ended, unsent.promise]);
  return error === undefined ? { kind: "built" } : { kind: "failed", failed: steps.failed(error) };
}

function optionsOf(build: EngineBuild, signal: AbortSignal): Docker.ImageBuildOptions {
  return {
    dockerfile: build.dockerfile,
    t: build.name,
    buildargs: { ...build.args },
    labels: { ...build.labels },
    networkmode: build.network,
    memory: build.memoryBytes,
    memswap: build.memoryBytes,
    rm: true,
    forcerm: true,
    version: "1",
    abortSignal: signal,
  };
}

/** The engine's error, or undefined when the stream ends without one. */
async function readProgress(answer: Readable, steps: StepLog): Promise<string | undefined> {
  for await (const line of createInterface({ input: answer, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.trim() === "") continue;
    const { stream, error } = JSON.parse(line) as Progress;
    if (error !== undefined) return error;
    if (stream !== undefined) steps.add(stream);
  }
  return steps.isComplete ? undefined : "the answer ended before the build did";
}

/** The step that runs now and its last lines. */
class StepLog {
  #step: string | undefined;
  #lines: string[] = [];
  #rest = "";
  isComplete = false;

  add(stream: string): void {
    const step = STEP.exec(stream)?.[1];
    if (step !== undefined) {
      this.#step = step.slice(0, MAX_LINE);
      this.#lines = [];
      this.#rest = "";
    }
    if (stream.startsWith("Successfully built ")) this.isComplete = true;
    if (BUILDERS_OWN.test(stream)) return;
    const lines = (this.#rest + stream).split(/[\r\n]+/);
    this.#rest = lines.pop()!.slice(-MAX_LINE);
    this.#lines.push(...lines.map(shown).filter((line) => line !== ""));
    this.#lines = this.#lines.slice(-LAST_LINES);
  }

  failed(message: string): FailedStep {
    const output = [...this.#lines, shown(this.#rest)].filter((line) => line !== "");
    return { ...(this.#step === undefined ? {} : { step: this.#step }), output, message: shown(message) };
  }
}

/** Without what a terminal would obey. */
function shown(line: string): string {
  return stripVTControlCharacters(line)
    .replace(/\p{Cc}/gu, " ")
    .trimEnd()
    .slice(0, MAX_LINE);
}
