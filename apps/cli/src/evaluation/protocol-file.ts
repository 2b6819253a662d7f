/** Owns reading a protocol file: TOML, every key known, defaults filled in. What it says is the contracts'. */
import { EvaluationProtocol, MortiseError } from "@mortise/contracts";
import { loadToml, parseStrict } from "@mortise/kernel";

/** @throws MORTISE_CONFIG_* naming the file, the field and what is allowed */
export async function readProtocol(path: string): Promise<EvaluationProtocol> {
  const protocol = parseStrict(EvaluationProtocol, await loadToml(path), { source: path });
  if (protocol.prompt.instruction.includes("{tests}") && protocol.shownTests === "none")
    throw new MortiseError({
      code: "MORTISE_CONFIG_INVALID",
      message: `${path}: prompt.instruction names {tests}, and shownTests is none.`,
      fix: 'Set shownTests = "copy", or take {tests} out of the instruction.',
      detail: { source: path, field: "prompt.instruction" },
    });
  return protocol;
}
