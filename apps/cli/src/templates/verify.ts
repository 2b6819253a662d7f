/**
 * Owns the verification of a checkpoint directory's chat template for the command line: what is read, and how
 * the result is told. Needs no weights and no accelerator; the checks themselves are packages/rendering's.
 */
import { openCheckpointText } from "@mortise/policy";
import { type RenderingPolicy, type TemplateVerification, verifyTemplate } from "@mortise/rendering";

export async function verifyCheckpointTemplate(
  directory: string,
  policy: RenderingPolicy,
): Promise<TemplateVerification> {
  const { tokenizer, chatTemplate, eosIds, tokenizerFiles, hfConfig } = await openCheckpointText(directory);
  const modelType = hfConfig?.model_type;
  return verifyTemplate({
    tokenizer,
    chatTemplate,
    eosIds,
    tokenizerConfigJson: tokenizerFiles.tokenizerConfigJson,
    modelType: typeof modelType === "string" ? modelType : undefined,
    policy,
  });
}

export function verificationLines(found: TemplateVerification): string[] {
  const { traits, cases } = found;
  const count = (outcome: string) => cases.filter((one) => one.outcome === outcome).length;
  const yes = (is: boolean) => (is ? "yes" : "no");
  const lines = [
    `family           ${found.family ?? "unknown"}`,
    `calls            ${found.calls ?? "none: requests with tools are refused"}`,
    `reasoning        ${reasoning(found)}`,
    `history          ${found.history} (append-only: ${yes(traits.isAppendOnly)}, keep possible: ${yes(traits.isTailStable)})`,
    `late system      ${found.lateSystem} (taken by the template: ${yes(traits.takesLateSystem)})`,
    `conversations    ${cases.length}: ${count("equal")} equal, ${count("equal-text")} in text, ${count("rewritten")} equal but for replies the template rewrites, ${count("refused")} refused, ${count("unequal")} unequal`,
  ];
  for (const deviation of found.deviations) lines.push(`deviation        ${deviation}`);
  for (const one of cases)
    if (one.outcome === "unequal") lines.push(`unequal          ${one.name}: ${one.detail}`);
    else if (one.misread.length > 0)
      lines.push(`misread          ${one.name}: replies ${one.misread.join(", ")}`);
    else if (one.outcome !== "equal")
      lines.push(`${one.outcome.padEnd(17)}${one.name} ${one.detail}`.trimEnd());
  return [...lines, found.isSound ? "sound" : "not sound"];
}

function reasoning({ traits }: TemplateVerification): string {
  if (!traits.reasoning) return "none";
  const { open, close } = traits.reasoning;
  const where = traits.closesReasoning
    ? ", closed in the prompt"
    : traits.opensInReasoning
      ? ", opened in the prompt"
      : "";
  return `${open} … ${close}${where}`;
}
