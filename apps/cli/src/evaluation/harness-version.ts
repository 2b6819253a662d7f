/** Owns the version a harness of a site will report, as far as it is known before anything runs. Starts nothing. */
import { MortiseError, type RunConfig, type SiteConfig } from "@mortise/contracts";
import { harnessNamed } from "@mortise/harnesses";

/** @throws MORTISE_OPERATOR_PROTOCOLS when the protocol asks for another version than the site has */
export function assertHarnessVersion(site: SiteConfig, { rollout, evaluation }: RunConfig): void {
  const wanted = evaluation.protocol?.harness.version;
  const found = versionOf(site.harness[rollout.harness]!);
  if (wanted === undefined || found === undefined || wanted === found) return;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_PROTOCOLS",
    message: `harness.version of the protocol is ${wanted}; harness ${rollout.harness} of the site is ${found}.`,
    fix: "Use a site with that version, or a protocol for this one.",
    detail: { field: "harness.version" },
  });
}

/** Undefined for what runs elsewhere. */
function versionOf(harness: SiteConfig["harness"][string]): string | undefined {
  if ("adapter" in harness) return harnessNamed(harness.adapter).version;
  return "version" in harness ? harness.version : undefined;
}
