/**
 * Owns what the policy sees of a custom tool, which takes one raw text: a function with that text as its only
 * argument. custom-input.ts is the way back.
 */
import type { ToolSchema } from "@mortise/capture";
import { isObject, type Json } from "./fields.js";

export const CUSTOM_ARGUMENT = "input";

const PARAMETERS = {
  type: "object",
  properties: { [CUSTOM_ARGUMENT]: { type: "string" } },
  required: [CUSTOM_ARGUMENT],
  additionalProperties: false,
};

/** @param tool its `description` and `format`, as both of OpenAI's protocols have them */
export function customSchema(name: string, tool: Json): ToolSchema {
  return { name, description: description(tool), parameters: PARAMETERS };
}

/** The raw text of a call in the history, as the arguments of that function. */
export function customArguments(input: string): string {
  return JSON.stringify({ [CUSTOM_ARGUMENT]: input });
}

/** The grammar of the text is all that says how it is written, so the policy is shown it. */
function description(tool: Json): string {
  const format = isObject(tool.format) ? tool.format : {};
  const { definition } = isObject(format.grammar) ? format.grammar : format;
  const about = typeof tool.description === "string" ? tool.description : "";
  if (typeof definition !== "string" || definition === "") return about;
  return `${about}\n\nGrammar of \`${CUSTOM_ARGUMENT}\`:\n${definition}`.trimStart();
}
