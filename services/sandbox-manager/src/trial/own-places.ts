/**
 * Owns which places in a sandbox a run's own mounts and scratch volumes may take. Does not mount anything.
 */
import { MortiseError, type SandboxOverrides } from "@mortise/contracts";
import { TOOLBOX_TARGET } from "@mortise/harness";
import { HARNESS_HOME, HARNESS_TARGET } from "../harness/places.js";

/** The kernel's, and what the harness is started from and writes to. */
const TAKEN = ["/proc", "/dev", "/sys", HARNESS_TARGET, TOOLBOX_TARGET, HARNESS_HOME];

/**
 * Throws MORTISE_SANDBOX_SETUP for a place that is not free. Something laid over the work tree would hide what the
 * agent is given and everything it changes: its trials would be graded as if it had done nothing.
 */
export function assertOwnPlaces(
  { mounts, scratch }: Pick<SandboxOverrides, "mounts" | "scratch">,
  workdir: string,
): void {
  const places = [
    ...mounts.map(({ target }) => ({ field: "rollout.mounts", target })),
    ...scratch.map(({ target }) => ({ field: "rollout.scratch", target })),
  ];
  for (const [at, { field, target }] of places.entries()) {
    const others = [...TAKEN, ...places.slice(0, at).map((one) => one.target)];
    const taken = others.find((other) => isWithin(target, other) || isWithin(other, target));
    if (taken !== undefined) throw refused(`${field}: ${target} meets ${taken}, which is taken.`);
    if (isWithin(workdir, target))
      throw refused(
        `${field}: ${target} would lie over the work tree, ${workdir}, and hide what is changed there.`,
      );
  }
}

function isWithin(place: string, other: string): boolean {
  return place === other || place.startsWith(`${other}/`);
}

function refused(message: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_SANDBOX_SETUP",
    message,
    fix: "Name another target in the run file.",
  });
}
