/**
 * Owns what a build that failed is counted under: told from the error's code, the cause the builder gives, and, for a
 * command that failed, its last lines. Does not build.
 */
import type { MortiseError } from "@mortise/contracts";

export const BUILD_CAUSES = [
  "refused",
  "repository",
  "base-image",
  "network",
  "resolver",
  "compile",
  "command",
  "missing-file",
  "dockerfile",
  "memory",
  "disk",
  "timeout",
  "engine",
] as const;
export type BuildFailureCause = (typeof BUILD_CAUSES)[number];

/** They say something about a place or a moment: the same build may do better later. */
const OF_THE_PLACE: ReadonlySet<BuildFailureCause> = new Set([
  ...(["repository", "base-image", "network", "memory", "disk", "timeout", "engine"] as const),
]);

const BY_BUILDER: Readonly<Record<string, BuildFailureCause>> = {
  network: "network",
  "missing-file": "missing-file",
  "out-of-memory": "memory",
  "out-of-space": "disk",
  timeout: "timeout",
  dockerfile: "dockerfile",
  engine: "engine",
};
const BY_CODE: Readonly<Record<string, BuildFailureCause>> = {
  MORTISE_TASK_RECORD: "refused",
  MORTISE_TASK_INVALID: "refused",
  MORTISE_TASK_SOURCE: "repository",
  MORTISE_SANDBOX_IMAGE_UNKNOWN: "base-image",
  MORTISE_SANDBOX_IMAGE_DENIED: "base-image",
  MORTISE_SANDBOX_IMAGE_DIGEST: "base-image",
  MORTISE_SANDBOX_IMAGE_INVALID: "base-image",
  MORTISE_SANDBOX_IMAGE_LAYER: "base-image",
  MORTISE_SANDBOX_IMAGE_OVER_LIMIT: "base-image",
  MORTISE_SANDBOX_IMAGE_REFERENCE: "base-image",
  MORTISE_SANDBOX_IMAGE_REGISTRY: "network",
  MORTISE_SANDBOX_NO_SPACE: "disk",
};

/** apt, pip, uv, conda, npm: a package or a set of versions that is not to be had. */
const RESOLVER =
  /unable to locate package|has no installation candidate|unmet dependencies|unable to correct problems|no matching distribution found|could not find a version that satisfies|resolutionimpossible|conflicting dependencies|resolution-too-deep|no solution found when resolving|packagesnotfounderror|unsatisfiableerror|\b(?:ERESOLVE|ETARGET)\b/i;
const COMPILE =
  /command '\S*(?:gcc|g\+\+|cc|clang)\S*' failed|fatal error: .*no such file|compilation terminated|failed building wheel|failed to build|make(?:\[\d+\])?: \*\*\*|undefined reference to|collect2: error|cannot find -l|cmake error|error\[E\d+\]|could not compile|ninja: build stopped/i;

export function buildCauseOf(error: MortiseError): BuildFailureCause {
  const { code, detail, message } = error;
  if (detail.cause === "command-failed") return commandCause(message);
  if (typeof detail.cause === "string" && Object.hasOwn(BY_BUILDER, detail.cause))
    return BY_BUILDER[detail.cause]!;
  // The limit can end before a build begins, while its bases are fetched.
  if (/base images were not there/.test(message)) return "timeout";
  if (/\bbase image \S+: the engine does not take it/.test(message)) return "base-image";
  if (code === "MORTISE_TASK_BUILD")
    return detail.field === "environment/Dockerfile" ? "dockerfile" : "missing-file";
  return Object.hasOwn(BY_CODE, code) ? BY_CODE[code]! : "engine";
}

/**
 * A package that is not to be had often ends in a build that fails: that is looked for first. The first line shows the
 * command, which may speak of anything; those after it are what the command printed.
 */
function commandCause(message: string): BuildFailureCause {
  const [, ...printed] = message.split("\n");
  const said = printed.join("\n");
  if (RESOLVER.test(said)) return "resolver";
  return COMPILE.test(said) ? "compile" : "command";
}

/** Whether the same build is worth another try without a change of the task. */
export function isWorthRetrying(cause: BuildFailureCause): boolean {
  return OF_THE_PLACE.has(cause);
}
