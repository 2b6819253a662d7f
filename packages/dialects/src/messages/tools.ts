/**
 * Owns reading the tools a request offers. Hosted tools, which the vendor would run, have no schema the policy
 * could be shown: they are named, not offered. A deferred tool is offered once a tool reference names it.
 */
import type { ToolSchema } from "@mortise/capture";
import { bad, isObject, type Json, nonEmptyString, object, optionalArray, string } from "../fields.js";
import type { ToolChoice } from "../types.js";
import type { Audit } from "./audit.js";

export interface OfferedTools {
  readonly tools: readonly ToolSchema[];
  /** Types, in the order given. */
  readonly hostedTools: readonly string[];
}

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readTools(request: Json, audit: Audit): OfferedTools {
  const tools: ToolSchema[] = [];
  const hostedTools: string[] = [];
  const referenced = referencedTools(request.messages);
  for (const [at, value] of optionalArray(request.tools, "tools").entries()) {
    const field = `tools[${at}]`;
    const tool = object(value, field);
    const type = string(tool.type ?? "custom", `${field}.type`);
    if (type !== "custom") {
      hostedTools.push(type);
      audit.note("hosted-tool-ignored", field);
      continue;
    }
    const schema = readTool(tool, field);
    if (tool.defer_loading !== true || referenced.has(schema.name)) tools.push(schema);
    else audit.note("deferred-tool-withheld", field);
  }
  return { tools, hostedTools };
}

/** Whether calls may be parallel is the policy's own choice; a wish against it is noted. */
export function readToolChoice(value: unknown, audit: Audit): ToolChoice {
  if (value === undefined || value === null) return { mode: "auto" };
  const choice = object(value, "tool_choice");
  if (choice.disable_parallel_tool_use === true)
    audit.note("parallel-limit-ignored", "tool_choice.disable_parallel_tool_use");
  switch (choice.type) {
    case "auto":
    case "none":
      return { mode: choice.type };
    case "any":
      return { mode: "required" };
    case "tool":
      return { mode: "tool", name: nonEmptyString(choice.name, "tool_choice.name") };
    default:
      throw bad("tool_choice.type", "is not auto, any, tool or none");
  }
}

function readTool(tool: Json, field: string): ToolSchema {
  const schema = tool.input_schema ?? null;
  if (schema !== null && !isObject(schema)) throw bad(`${field}.input_schema`, "is not an object");
  return {
    name: nonEmptyString(tool.name, `${field}.name`),
    description: typeof tool.description === "string" ? tool.description : "",
    parameters: schema,
  };
}

/** Names in `tool_reference` blocks of tool results: a search the harness answered. */
function referencedTools(messages: unknown): Set<string> {
  const names = new Set<string>();
  for (const message of listOf(messages))
    for (const block of listOf(isObject(message) ? message.content : undefined))
      for (const inner of listOf(isObject(block) ? block.content : undefined))
        if (isObject(inner) && inner.type === "tool_reference" && typeof inner.tool_name === "string")
          names.add(inner.tool_name);
  return names;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
