/** Owns with which tokenizer a run's captured ids are read as text: the named one, else that of the run's checkpoint. */
import { MortiseError } from "@mortise/contracts";
import { PolicyText } from "./policy-text.js";
import type { RunHistory } from "./run-history.js";

/**
 * For whoever hands a run's content on: secrets are looked for in text, so nothing may leave whose text cannot be read.
 * @param option that names the checkpoint, for the error
 * @throws MortiseError MORTISE_OPERATOR_USAGE where no checkpoint is known, MORTISE_POLICY_CHECKPOINT for a broken one
 */
export async function runText(
  { run, config }: RunHistory,
  checkpoint: string | undefined,
  option = "--checkpoint",
): Promise<PolicyText> {
  const directory = checkpoint ?? config?.policy.checkpoint;
  if (directory !== undefined) return PolicyText.open(directory, config?.policy);
  throw new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: `The checkpoint of run ${run} is not known.`,
    fix: `Name it with ${option}: its tokenizer reads the captured ids.`,
    detail: { field: option },
  });
}
