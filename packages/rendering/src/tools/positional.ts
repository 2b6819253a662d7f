/**
 * Owns the positional call syntax: `NAME v1 => v2`. Values stand for the properties of the tool's schema in
 * their order; as many as it requires at least, as many as it has at most. Values of other types than string
 * are read as JSON. Whitespace inside a value is kept; a value cannot contain the separator. The values have
 * no marks of their own, so a call is read when it is closed, whole or not at all.
 */
import type { ToolSchema } from "@mortise/capture";
import { CALL_CLOSE, CALL_OPEN, type CallReader, type ToolFormat } from "./types.js";

const SEPARATOR = " => ";

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>;
  readonly required?: readonly string[];
}

export const positional: ToolFormat = {
  name: "positional",
  open: [CALL_OPEN],
  close: CALL_CLOSE,
  bareStart: undefined,
  reader: (tools) => new PositionalReader(tools),
};

class PositionalReader implements CallReader {
  name: string | undefined;
  hasFailed = false;
  readonly isComplete = false;
  private readonly tools: readonly ToolSchema[];
  private readonly pieces: string[] = [];
  private given = "";

  constructor(tools: readonly ToolSchema[]) {
    this.tools = tools;
  }

  push(text: string): string {
    this.pieces.push(text);
    return "";
  }

  takeArguments(): string {
    const text = this.given;
    this.given = "";
    return text;
  }

  close(): void {
    const call = parse(this.pieces.join(""), this.tools);
    this.hasFailed = call === undefined;
    this.name = call?.name;
    this.given = call?.arguments ?? "";
  }
}

function parse(body: string, tools: readonly ToolSchema[]): { name: string; arguments: string } | undefined {
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
