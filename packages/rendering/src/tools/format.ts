/**
 * Owns which call syntax belongs to a checkpoint: named by `mortise.tool_format` in tokenizer_config.json, or
 * recognised by rendering a call with the chat template and reading it back. A request with tools is refused
 * when none fits: calls would silently arrive as text and every trial would look like one turn.
 */
import type { Message, ToolSchema } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { Renderer } from "../render/renderer.js";
import { hermes } from "./hermes.js";
import { positional } from "./positional.js";
import { CALL_CLOSE, CALL_OPEN, type ToolFormat } from "./types.js";

const FORMATS: readonly ToolFormat[] = [positional, hermes];

const PROBE_ARGUMENTS = { first: "one", second: "two" };
const PROBE_TOOL: ToolSchema = {
  name: "probe",
  description: "",
  parameters: { type: "object", properties: { first: { type: "string" }, second: { type: "string" } } },
};
const PROBE: readonly Message[] = [
  { role: "user", text: "x" },
  {
    role: "assistant",
    text: "",
    reasoning: "",
    toolCalls: [{ id: "probe", name: PROBE_TOOL.name, arguments: JSON.stringify(PROBE_ARGUMENTS) }],
  },
];

/**
 * @param tokenizerConfigJson text of tokenizer_config.json
 * @throws MortiseError MORTISE_POLICY_UNSUPPORTED when the named format does not exist
 */
export function toolFormatOf(tokenizerConfigJson: string, renderer: Renderer): ToolFormat | undefined {
  const config = JSON.parse(tokenizerConfigJson) as { mortise?: { tool_format?: unknown } };
  const named = config.mortise?.tool_format;
  if (named === undefined) return FORMATS.find((format) => readsBack(format, renderedCall(renderer)));
  const format = FORMATS.find((one) => one.name === named);
  if (format) return format;
  throw new MortiseError({
    code: "MORTISE_POLICY_UNSUPPORTED",
    message: `tokenizer_config.json: mortise.tool_format is ${JSON.stringify(named)}.`,
    fix: `Use one of: ${FORMATS.map((one) => one.name).join(", ")}.`,
    detail: { field: "mortise.tool_format" },
  });
}

/** What the template writes between the call marks; the last pair, as the system prompt may show an example. */
function renderedCall(renderer: Renderer): string | undefined {
  try {
    const { text } = renderer.renderWhole({ messages: PROBE, tools: [PROBE_TOOL] });
    const end = text.lastIndexOf(CALL_CLOSE);
    const start = text.lastIndexOf(CALL_OPEN, end);
    return start < 0 || end < 0 ? undefined : text.slice(start + CALL_OPEN.length, end);
  } catch (error) {
    if (error instanceof MortiseError) return undefined;
    throw error;
  }
}

function readsBack(format: ToolFormat, body: string | undefined): boolean {
  const call = body === undefined ? undefined : format.parse(body, [PROBE_TOOL]);
  if (call?.name !== PROBE_TOOL.name) return false;
  const given = JSON.parse(call.arguments) as Record<string, unknown>;
  return Object.entries(PROBE_ARGUMENTS).every(([name, value]) => given[name] === value);
}
