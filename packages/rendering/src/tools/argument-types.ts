/**
 * Owns which JSON types a tool's schema allows for an argument, and reading text as one of them. For syntaxes
 * that write values without their type. What fits no type is a string: the harness judges it, not the proxy.
 */
import type { ToolSchema } from "@mortise/capture";

type Json = Readonly<Record<string, unknown>>;

const MAX_REFERENCES = 8;

/** Types the schema of a property names, through alternatives and local references; empty when it names none. */
export function argumentTypes(tool: ToolSchema | undefined, property: string): ReadonlySet<string> {
  const root = asObject(tool?.parameters);
  const types = new Set<string>();
  collect(asObject(asObject(root?.properties)?.[property]), root, types, MAX_REFERENCES);
  return types;
}

function collect(schema: Json | undefined, root: Json | undefined, types: Set<string>, depth: number): void {
  if (!schema || depth === 0) return;
  for (const type of Array.isArray(schema.type) ? schema.type : [schema.type])
    if (typeof type === "string") types.add(type);
  if (typeof schema.$ref === "string") collect(resolve(schema.$ref, root), root, types, depth - 1);
  for (const alternatives of [schema.anyOf, schema.oneOf, schema.allOf])
    if (Array.isArray(alternatives))
      for (const one of alternatives) collect(asObject(one), root, types, depth - 1);
}

/** A reference into the same document, `#/$defs/Name`. */
function resolve(reference: string, root: Json | undefined): Json | undefined {
  if (!reference.startsWith("#/")) return undefined;
  let found: unknown = root;
  for (const name of reference.slice(2).split("/")) found = asObject(found)?.[name];
  return asObject(found);
}

function asObject(value: unknown): Json | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
}

/** JSON text of a whole value. Numbers and structures keep the spelling they have. */
export function argumentJson(text: string, types: ReadonlySet<string>): string {
  const trimmed = text.trim();
  if (types.has("null") && /^(null|none)$/i.test(trimmed)) return "null";
  if (types.has("boolean") && /^(true|false)$/i.test(trimmed)) return trimmed.toLowerCase();
  const found = jsonType(trimmed);
  if (found === "number" && (types.has("number") || types.has("integer"))) return trimmed;
  if ((found === "object" || found === "array") && types.has(found)) return trimmed;
  return JSON.stringify(text);
}

function jsonType(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? "array" : typeof value;
  } catch {
    return undefined;
  }
}
