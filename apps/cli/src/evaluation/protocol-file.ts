/** Owns reading a protocol file: TOML, every key known, defaults filled in. What it says is the contracts'. */
import { EvaluationProtocol, MortiseError } from "@mortise/contracts";
import { loadToml, parseStrict } from "@mortise/kernel";

/** @throws MORTISE_CONFIG_* naming the file, the field and what is allowed */
export async function readProtocol(path: string): Promise<EvaluationProtocol> {
  return protocolIn(await loadToml(path), path);
}

/**
 * @param source what it was read from, for messages
 * @throws MORTISE_CONFIG_* naming the source, the field and what is allowed
 */
export function protocolIn(table: unknown, source: string): EvaluationProtocol {
  const protocol = parseStrict(EvaluationProtocol, table, { source });
  if (protocol.prompt.instruction.includes("{tests}") && protocol.shownTests === "none")
    throw new MortiseError({
      code: "MORTISE_CONFIG_INVALID",
      message: `${source}: prompt.instruction names {tests}, and shownTests is none.`,
      fix: 'Set shownTests = "copy", or take {tests} out of the instruction.',
      detail: { source, field: "prompt.instruction" },
    });
  return protocol;
}
