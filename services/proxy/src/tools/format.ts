/**
 * Owns which call syntax belongs to a checkpoint: named by `mortise.tool_format` in tokenizer_config.json, or
 * recognised in the chat template. A request with tools is refused when none fits: calls would silently
 * arrive as text and every trial would look like one turn.
 */
import { MortiseError } from "@mortise/contracts";
import { hermes } from "./hermes.js";
import { positional } from "./positional.js";
import { CALL_OPEN, type ToolFormat } from "./types.js";

const FORMATS: readonly ToolFormat[] = [positional, hermes];

/**
 * @param tokenizerConfigJson text of tokenizer_config.json
 * @param chatTemplate text of the chat template
 * @throws MortiseError MORTISE_POLICY_UNSUPPORTED when the named format does not exist
 */
export function toolFormatOf(tokenizerConfigJson: string, chatTemplate: string): ToolFormat | undefined {
  const config = JSON.parse(tokenizerConfigJson) as { mortise?: { tool_format?: unknown } };
  const named = config.mortise?.tool_format;
  if (named !== undefined) {
    const format = FORMATS.find((one) => one.name === named);
    if (format) return format;
    throw new MortiseError({
      code: "MORTISE_POLICY_UNSUPPORTED",
      message: `tokenizer_config.json: mortise.tool_format is ${JSON.stringify(named)}.`,
      fix: `Use one of: ${FORMATS.map((one) => one.name).join(", ")}.`,
      detail: { field: "mortise.tool_format" },
    });
  }
  const isHermes = chatTemplate.includes(CALL_OPEN) && /["']arguments["']|\.arguments/.test(chatTemplate);
  return isHermes ? hermes : undefined;
}
