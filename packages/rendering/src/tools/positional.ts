/**
 * Owns the positional call syntax: `NAME v1 => v2`. Values stand for the properties of the tool's schema in
 * their order; as many as it requires at least, as many as it has at most. Values of other types than string
 * are read as JSON. Whitespace inside a value is kept; a value cannot contain the separator.
 */
import type { ToolSchema } from "@mortise/capture";
import type { ParsedCall, ToolFormat } from "./types.js";

const SEPARATOR = " => ";

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>;
  readonly required?: readonly string[];
}

export const positional: ToolFormat = { name: "positional", parse };

function parse(body: string, tools: readonly ToolSchema[]): ParsedCall | undefined {
  const space = body.indexOf(" ");
  const name = space < 0 ? body : body.slice(0, space);
  const tool = tools.find((one) => one.name === name);
  if (!tool) return undefined;
  const schema = (tool.parameters ?? {}) as ObjectSchema;
  const properties = Object.entries(schema.properties ?? {});
  const values = space < 0 ? [] : body.slice(space + 1).split(SEPARATOR);
  if (values.length < (schema.required ?? []).length || values.length > properties.length) return undefined;
  const given: Record<string, unknown> = {};
  for (const [at, value] of values.entries()) {
    const [property, { type }] = properties[at]!;
    const read = type === undefined || type === "string" ? value : readJson(value, type);
    if (read === undefined) return undefined;
    given[property] = read;
  }
  return { name, arguments: JSON.stringify(given) };
}

function readJson(text: string, type: unknown): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const found = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  const isMatch = type === found || (type === "integer" && Number.isInteger(value));
  return isMatch ? value : undefined;
}
