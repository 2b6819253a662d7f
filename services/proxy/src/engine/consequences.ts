/**
 * Owns what follows from a capability that an engine lacks, in words for the log and the operator. Does not
 * decide: what cannot be done without a capability is refused where it would be done.
 */
import type { EngineCapabilities } from "./types.js";

/** One sentence for each thing that will be missing from the record of a run with these settings. */
export function consequencesOf(
  capabilities: EngineCapabilities,
  settings: { readonly temperature: number },
): string[] {
  const found: string[] = [];
  const { logProbabilities } = capabilities;
  if (logProbabilities === "none")
    found.push("log-probabilities are absent from every turn: the trainer must recompute them");
  if (logProbabilities === "raw")
    found.push(
      settings.temperature === 1
        ? "log-probabilities are those before temperature, which at temperature 1 are those sampled from"
        : `log-probabilities are those before temperature, so turns at temperature ${settings.temperature} have none`,
    );
  if (!capabilities.routedExperts) found.push("routed experts are absent from every turn");
  if (!capabilities.weightUpdates)
    found.push("the weights cannot be changed: only a run that never publishes another version is served");
  if (!capabilities.weightVersions)
    found.push(
      "the engine does not say which weights sampled a token: spans carry the version it was opened with",
    );
  return found;
}
