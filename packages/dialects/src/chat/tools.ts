/** Owns the tools of a Chat Completions request, and what it says about their choice. */
import type { ToolSchema } from "@mortise/capture";
import { customSchema } from "../custom-tool.js";
import { bad, isObject, nonEmptyString, object, optionalArray, string } from "../fields.js";
import type { AuditNote, ToolChoice, ToolTarget } from "../types.js";

export interface OfferedTools {
  readonly schemas: readonly ToolSchema[];
  readonly targets: ReadonlyMap<string, ToolTarget>;
  readonly hosted: readonly string[];
}

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readTools(value: unknown): OfferedTools {
  const schemas: ToolSchema[] = [];
  const targets = new Map<string, ToolTarget>();
  const hosted: string[] = [];
  for (const [at, one] of optionalArray(value, "tools").entries()) {
    const field = `tools[${at}]`;
    const tool = object(one, field);
    const type = string(tool.type ?? "function", `${field}.type`);
    if (type === "function") schemas.push(functionSchema(tool.function, `${field}.function`));
    else if (type === "custom") {
      const custom = object(tool.custom, `${field}.custom`);
      const name = nonEmptyString(custom.name, `${field}.custom.name`);
      targets.set(name, { name, namespace: undefined, isCustom: true });
      schemas.push(customSchema(name, custom));
    } else hosted.push(type);
  }
  return { schemas, targets, hosted };
}

function functionSchema(value: unknown, field: string): ToolSchema {
  const { name, description, parameters = null } = object(value, field);
  return {
    name: nonEmptyString(name, `${field}.name`),
    description: typeof description === "string" ? description : "",
    parameters,
  };
}

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readToolChoice(value: unknown, audit: AuditNote[]): ToolChoice {
  if (value === undefined || value === null || value === "auto") return { mode: "auto" };
  if (value === "none" || value === "required") return { mode: value };
  const choice = object(value, "tool_choice");
  const type = choice.type ?? "function";
  if (type === "function" || type === "custom") {
    const target = object(choice[type], `tool_choice.${type}`);
    return { mode: "tool", name: nonEmptyString(target.name, `tool_choice.${type}.name`) };
  }
  if (type !== "allowed_tools") throw bad("tool_choice.type", "is not function, custom or allowed_tools");
  // A subset of the tools is not something the policy can be held to.
  audit.push({ what: "tool-choice-widened", field: "tool_choice" });
  const allowed = isObject(choice.allowed_tools) ? choice.allowed_tools : {};
  return { mode: allowed.mode === "required" ? "required" : "auto" };
}
