/**
 * Owns the Hermes call syntax: a JSON object `{"name": …, "arguments": {…}}` between the marks. The argument
 * text reaches the harness as the policy wrote it, not re-serialised. Names are not checked against the
 * offered tools: the harness answers an unknown tool, and the policy learns from the answer.
 */
import type { ParsedCall, ToolFormat } from "./types.js";

export const hermes: ToolFormat = { name: "hermes", parse };

function parse(body: string): ParsedCall | undefined {
  let call: unknown;
  try {
    call = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (typeof call !== "object" || call === null || Array.isArray(call)) return undefined;
  const { name, arguments: given } = call as { name?: unknown; arguments?: unknown };
  if (typeof name !== "string" || name === "") return undefined;
  if (given === undefined) return { name, arguments: "{}" };
  if (typeof given !== "object" || given === null || Array.isArray(given)) return undefined;
  return { name, arguments: argumentText(body) ?? JSON.stringify(given) };
}

/** The text of the last member when that is `arguments`: the order every Hermes template teaches. */
function argumentText(body: string): string | undefined {
  const match = /^\s*\{\s*"name"\s*:\s*"[^"\\]*"\s*,\s*"arguments"\s*:\s*(\{[\s\S]*\})\s*\}\s*$/.exec(body);
  return match?.[1];
}
