/**
 * Owns what a failed build is called: its cause told from the engine's words and the last lines of the step, and
 * whether the task or the place is to blame. Does not build.
 */
import { MortiseError } from "@mortise/contracts";

export type BuildCause =
  | "network"
  | "missing-file"
  | "command-failed"
  | "out-of-memory"
  | "out-of-space"
  | "timeout"
  | "dockerfile"
  | "engine";

export interface FailedStep {
  /** As the engine shows it, `2/5 : RUN make`; absent when no step had begun. */
  readonly step?: string;
  /** Last lines of what it printed. */
  readonly output: readonly string[];
  /** The engine's own words. */
  readonly message: string;
}

const NO_SPACE = /no space left on device|ENOSPC|disk quota exceeded/i;
const NO_NETWORK =
  /could ?n[o']t resolve|temporary failure (?:in name resolution|resolving)|name or service not known|network is unreachable|no such host|dial tcp|getaddrinfo|EAI_AGAIN|ENOTFOUND|ENETUNREACH|failed to establish a new connection|connection (?:timed out|refused)|TLS handshake timeout/i;
const MISSING_FILE =
  /(?:ADD|COPY) failed: .*(?:no such file|not found|does not exist|no source files)|(?:ADD|COPY) failed: forbidden path/i;
const KILLED = /returned a non-zero code: 137/;
const COMMAND = /returned a non-zero code: \d+/;
const DOCKERFILE =
  /dockerfile parse error|unknown (?:instruction|flag)|requires BuildKit|requires the? ?buildkit|no image was generated|invalid (?:from|reference)|requires (?:at least|exactly)|must be|No build stage in current context/i;

const FIX: Readonly<Record<BuildCause, string | undefined>> = {
  network: undefined,
  "missing-file": "Put the file into environment/, or take it out of environment/.dockerignore.",
  "command-failed": "Correct the command: see its last lines.",
  "out-of-memory": "Raise sandbox.images.build.memoryBytes, or make the step smaller.",
  "out-of-space": "Free space where the Docker engine keeps its images (docker image prune, mortise clean).",
  timeout:
    "Raise environment.build_timeout_sec, or sandbox.images.build.timeoutMultiplier; steps that ended are kept.",
  dockerfile: "Correct the step; the classic builder is used, without BuildKit.",
  engine: "See the Docker engine's log.",
};
const OF_THE_TASK: ReadonlySet<BuildCause> = new Set(["missing-file", "command-failed", "dockerfile"]);

export function causeOf({ message, output }: FailedStep): BuildCause {
  const said = [...output, message].join("\n");
  if (NO_SPACE.test(said)) return "out-of-space";
  if (MISSING_FILE.test(message)) return "missing-file";
  if (KILLED.test(message)) return "out-of-memory";
  // A download that fails is a command that fails: what it printed tells.
  if (COMMAND.test(message)) return NO_NETWORK.test(said) ? "network" : "command-failed";
  if (NO_NETWORK.test(message)) return "network";
  return DOCKERFILE.test(message) ? "dockerfile" : "engine";
}

/** @param network of the build, for the fix of a cause that is the network */
export function buildFailed(
  task: string,
  failed: FailedStep,
  cause: BuildCause,
  network: string,
): MortiseError {
  const step = failed.step === undefined ? "" : ` in step ${failed.step}`;
  const lines = failed.output.map((line) => `\n  ${line}`).join("");
  const isClosed = cause === "network" && network === "none";
  const fix = isClosed
    ? 'Builds have no network here: set sandbox.images.build.network = "bridge", or bring the files in environment/.'
    : FIX[cause];
  return new MortiseError({
    code: OF_THE_TASK.has(cause) || isClosed ? "MORTISE_TASK_BUILD" : "MORTISE_SANDBOX_IMAGE_BUILD",
    message: `${task}: ${cause}${step}: ${failed.message}${lines}`,
    ...(fix === undefined ? {} : { fix }),
    detail: { cause, ...(failed.step === undefined ? {} : { step: failed.step }) },
  });
}
