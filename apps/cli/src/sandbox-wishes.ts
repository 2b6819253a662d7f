/**
 * Owns whether what a run asks of its sandboxes is something its site gives: asked before anything is started, and
 * before any trial would find out. Pure.
 */
import { MortiseError, type RunConfig, type SiteConfig } from "@mortise/contracts";

/** @throws MORTISE_HARNESS_UNKNOWN, MORTISE_HARNESS_REMOTE_UNPROVEN, MORTISE_CONFIG_INVALID: names the field of the run file */
export function assertSandboxWishes(site: SiteConfig, { rollout }: RunConfig): void {
  if (!Object.hasOwn(site.harness, rollout.harness))
    throw new MortiseError({
      code: "MORTISE_HARNESS_UNKNOWN",
      message: `rollout.harness is ${rollout.harness}; the site file has ${listed(site.harness)}.`,
      detail: { field: "rollout.harness" },
    });
  if ("remote" in site.harness[rollout.harness]! && rollout.unproven !== "allow")
    throw new MortiseError({
      code: "MORTISE_HARNESS_REMOTE_UNPROVEN",
      message: `rollout.harness is ${rollout.harness}, which runs in a remote runtime; rollout.unproven is ${rollout.unproven}.`,
      detail: { field: "rollout.unproven" },
    });
  const { shared, maxScratchBytes } = site.sandbox;
  for (const [at, { name }] of rollout.mounts.entries())
    if (!Object.hasOwn(shared, name))
      throw impossible(`rollout.mounts.${at}.name`, `is ${name}; sandbox.shared has ${listed(shared)}.`);
  const bytes = rollout.scratch.reduce((sum, volume) => sum + volume.bytes, 0);
  if (bytes > maxScratchBytes)
    throw impossible(
      "rollout.scratch",
      `asks for ${bytes} bytes together; sandbox.maxScratchBytes of the site is ${maxScratchBytes}.`,
    );
}

function listed(names: object): string {
  return Object.keys(names).join(", ") || "none";
}

function impossible(field: string, problem: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `${field} ${problem}`,
    fix: "Correct the run file, or let the site file give it.",
    detail: { field },
  });
}
