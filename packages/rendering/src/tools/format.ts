/**
 * Owns which call syntax belongs to a checkpoint: named by `mortise.tool_format` in tokenizer_config.json, or
 * recognised. Either way it must read back calls that the chat template writes, over token ids, before anything
 * is sampled: a parser that does not fit makes every call arrive as text and every trial look like one turn.
 */
import { isDeepStrictEqual } from "node:util";
import type { ToolCall, ToolSchema } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { Tokenizer } from "@mortise/policy";
import type { Renderer } from "../render/renderer.js";
import { hermes } from "./hermes.js";
import { llamaJson } from "./llama-json.js";
import { positional } from "./positional.js";
import { qwenXml } from "./qwen-xml.js";
import { ReplyParser } from "./reply-parser.js";
import type { ToolFormat } from "./types.js";

const FORMATS: readonly ToolFormat[] = [positional, hermes, qwenXml, llamaJson];

const PROBE_TOOL: ToolSchema = {
  name: "probe",
  description: "Probes.",
  parameters: {
    type: "object",
    properties: {
      first: { type: "string" },
      second: { type: "string" },
      count: { type: "integer" },
      share: { type: "number" },
      isOn: { type: "boolean" },
      nested: { type: "object" },
      list: { type: "array" },
    },
  },
};

/** Strings only: what every syntax can say. */
const PLAIN = { first: "one", second: "two" };
/** What a syntax that claims to carry JSON must carry. */
const RICH = [
  {},
  { first: '"quoted" \\ and\n\ttwo lines\n', second: " é 漢 🙂 </x> {{ }} <b>&amp;" },
  { count: -3, share: 0.5, isOn: true, nested: { a: [1, { b: "c" }], d: null }, list: ["x", 2, false] },
];

/** What checking a format needs of a checkpoint. */
export interface FormatParts {
  readonly tokenizerConfigJson: string;
  readonly tokenizer: Tokenizer;
  readonly renderer: Renderer;
  readonly stopIds: ReadonlySet<number>;
}

/**
 * The checkpoint's call syntax; undefined when none reads its calls back, so that requests with tools are refused.
 * @throws MortiseError MORTISE_POLICY_UNSUPPORTED when the named format does not exist or does not fit
 */
export function toolFormatOf(parts: FormatParts): ToolFormat | undefined {
  const config = JSON.parse(parts.tokenizerConfigJson) as { mortise?: { tool_format?: unknown } };
  const named = config.mortise?.tool_format;
  if (named === undefined) return FORMATS.find((format) => readsBack(format, parts));
  const format = FORMATS.find((one) => one.name === named);
  if (!format) throw unsupported(`is ${JSON.stringify(named)}`, `Use one of: ${nameList()}.`);
  if (readsBack(format, parts)) return format;
  throw unsupported(
    `is ${format.name}, which does not read back the calls that the chat template writes`,
    "Name the syntax the chat template writes, or leave it out to have it recognised.",
  );
}

function readsBack(format: ToolFormat, parts: FormatParts): boolean {
  const probes = format === positional ? [PLAIN] : [PLAIN, ...RICH];
  return probes.every((given) => readsCallBack(format, given, parts));
}

function readsCallBack(format: ToolFormat, given: object, parts: FormatParts): boolean {
  const { renderer, tokenizer, stopIds } = parts;
  const call: ToolCall = { id: "probe", name: PROBE_TOOL.name, arguments: JSON.stringify(given) };
  const text = writtenCall(renderer, call);
  if (text === undefined) return false;
  const { reasoning, opensInReasoning } = renderer.traits;
  const tools = [PROBE_TOOL];
  const parser = new ReplyParser({ tokenizer, format, tools, reasoning, opensInReasoning, stopIds });
  const read = [...parser.push(tokenizer.encode(text)), ...parser.end()];
  const kinds = read.map((part) => part.kind).filter((kind) => kind !== "call-arguments");
  const name = read.find((part) => part.kind === "call-start")?.name;
  const spelled = read.map((part) => (part.kind === "call-arguments" ? part.text : "")).join("");
  return kinds.join() === "call-start,call-end" && name === call.name && isSame(spelled, given);
}

function writtenCall(renderer: Renderer, call: ToolCall): string | undefined {
  try {
    const reply = { role: "assistant" as const, text: "", reasoning: "", toolCalls: [call] };
    return renderer.writer.reply(reply, [PROBE_TOOL]);
  } catch (error) {
    if (error instanceof MortiseError) return undefined;
    throw error;
  }
}

function isSame(text: string, given: object): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(text), given);
  } catch {
    return false;
  }
}

function nameList(): string {
  return FORMATS.map((one) => one.name).join(", ");
}

function unsupported(what: string, fix: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_POLICY_UNSUPPORTED",
    message: `tokenizer_config.json: mortise.tool_format ${what}.`,
    fix,
    detail: { field: "mortise.tool_format" },
  });
}
