/**
 * Owns the tools of a Responses request and the two names a tool has: the flat one the policy sees, and the
 * one on the wire, with a namespace or as a custom tool. Calls in the history are named by the same rule, so
 * a history whose tools are gone (a compaction call offers none) still reads the same.
 */
import type { ToolSchema } from "@mortise/capture";
import { customSchema } from "../custom-tool.js";
import { array, type Json, nonEmptyString, object, optionalArray, string } from "../fields.js";
import type { AuditNote, ToolChoice, ToolTarget } from "../types.js";

export interface OfferedTools {
  readonly schemas: readonly ToolSchema[];
  readonly targets: ReadonlyMap<string, ToolTarget>;
  /** The name the policy sees for a name on the wire. */
  policyName(name: string, namespace: string | undefined): string;
  /** Types of tools the API's host would have to run. */
  readonly hosted: readonly string[];
}

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readTools(value: unknown): OfferedTools {
  const reading = new Reading();
  for (const [at, tool] of optionalArray(value, "tools").entries())
    reading.tool(tool, `tools[${at}]`, undefined);
  return reading;
}

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readToolChoice(value: unknown, tools: OfferedTools, audit: AuditNote[]): ToolChoice {
  if (value === undefined || value === null || value === "auto") return { mode: "auto" };
  if (value === "none" || value === "required") return { mode: value };
  const choice = object(value, "tool_choice");
  const type = string(choice.type, "tool_choice.type");
  if (type === "function" || type === "custom") {
    const name = nonEmptyString(choice.name, "tool_choice.name");
    return { mode: "tool", name: tools.policyName(name, namespaceOf(choice)) };
  }
  // A subset of the tools, or a hosted one, is not something the policy can be held to.
  audit.push({ what: "tool-choice-widened", field: "tool_choice" });
  return { mode: type === "allowed_tools" && choice.mode === "required" ? "required" : "auto" };
}

export function namespaceOf(item: Json): string | undefined {
  return typeof item.namespace === "string" && item.namespace !== "" ? item.namespace : undefined;
}

function flatName(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}__${name}`;
}

function wireKey(name: string, namespace: string | undefined): string {
  return JSON.stringify([namespace ?? null, name]);
}

class Reading implements OfferedTools {
  readonly schemas: ToolSchema[] = [];
  readonly targets = new Map<string, ToolTarget>();
  readonly hosted: string[] = [];
  private readonly names = new Set<string>();
  /** The last number that was given to a name: thousands of equal names must not be counted through each time. */
  private readonly repeats = new Map<string, number>();
  private readonly byWire = new Map<string, string>();

  policyName(name: string, namespace: string | undefined): string {
    return this.byWire.get(wireKey(name, namespace)) ?? flatName(name, namespace);
  }

  tool(value: unknown, field: string, namespace: string | undefined): void {
    const tool = object(value, field);
    const type = nonEmptyString(tool.type, `${field}.type`);
    if (type === "namespace" && namespace === undefined) this.namespace(tool, field);
    else if (type === "function" || type === "custom") this.own(tool, field, namespace);
    else this.hosted.push(type);
  }

  private own(tool: Json, field: string, namespace: string | undefined): void {
    const wire = nonEmptyString(tool.name, `${field}.name`);
    const isCustom = tool.type === "custom";
    const name = this.unique(flatName(wire, namespace));
    const key = wireKey(wire, namespace);
    if (!this.byWire.has(key)) this.byWire.set(key, name);
    if (isCustom || name !== wire) this.targets.set(name, { name: wire, namespace, isCustom });
    const { parameters = null } = tool;
    const schema = { name, description: text(tool.description), parameters };
    this.schemas.push(isCustom ? customSchema(name, tool) : schema);
  }

  /** What a namespace says of itself stands before its first tool: the policy sees one flat list. */
  private namespace(tool: Json, field: string): void {
    const name = nonEmptyString(tool.name, `${field}.name`);
    const first = this.schemas.length;
    for (const [at, member] of array(tool.tools, `${field}.tools`).entries())
      this.tool(member, `${field}.tools[${at}]`, name);
    const about = text(tool.description);
    const opening = this.schemas[first];
    if (opening && about !== "")
      this.schemas[first] = { ...opening, description: joined(about, opening.description) };
  }

  private unique(name: string): string {
    let free = name;
    let n = this.repeats.get(name) ?? 1;
    while (this.names.has(free)) free = `${name}_${++n}`;
    this.repeats.set(name, n);
    this.names.add(free);
    return free;
  }
}

function joined(...texts: readonly string[]): string {
  return texts.filter((one) => one !== "").join("\n\n");
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
