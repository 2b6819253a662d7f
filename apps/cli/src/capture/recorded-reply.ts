/**
 * Owns what a recorded step says was sampled: text and calls, in order, or nothing where the step is a failure
 * before the first token. Understands a step's short form (text, tools) and replies given whole, as blocks of
 * Messages, items of Responses, or a JSON body of any of the three protocols.
 */
import { isRecord, type Json } from "./recording.js";

export interface RecordedCall {
  readonly id: string;
  readonly name: string;
  /** As sampled; need not be valid JSON. */
  readonly arguments: string;
}

export interface RecordedReply {
  readonly text: string;
  readonly calls: readonly RecordedCall[];
  /** The step ends the reply with an error instead of its final event. */
  readonly isFailed: boolean;
}

/** Words by which the servers of the measured harnesses name an overflow. */
const OVERFLOW =
  /context[_ ](length|window)|maximum context|prompt is too long|exceed context limit|reduce the length/i;
const TOO_LARGE = 413;

/** The reply of a step; undefined when it failed before anything was sampled. */
export function recordedReply(step: Json): RecordedReply | undefined {
  if (isRecord(step.err) || step.destroy === true) return undefined;
  const text: string[] = [];
  const calls: RecordedCall[] = [];
  for (const part of partsOf(step)) {
    if (typeof part.text === "string") text.push(part.text);
    if (part.call) calls.push(part.call);
  }
  const failure = step.streamErr ?? step.failed;
  const isFailed = failure !== undefined;
  const isBeforeAll = isFailed && step.streamErrLate !== true;
  if (isBeforeAll && (step.streamErr !== undefined || (text.length === 0 && calls.length === 0)))
    return undefined;
  // The client shows and keeps nothing of a refused reply.
  if (step.stop === "refusal") return { text: "", calls: [], isFailed };
  return { text: text.join(""), calls, isFailed };
}

/** Whether the step's error is that the context is too long. */
export function isOverflow(step: Json): boolean {
  if (!isRecord(step.err)) return saysOverflow(step.streamErr ?? step.failed);
  return step.err.status === TOO_LARGE || saysOverflow(step.err.json ?? step.err.text);
}

function saysOverflow(error: unknown): boolean {
  return error !== undefined && OVERFLOW.test(JSON.stringify(error));
}

interface Part {
  readonly text?: unknown;
  readonly call?: RecordedCall;
}

function partsOf(step: Json): Part[] {
  if (Array.isArray(step.blocks)) return step.blocks.filter(isRecord).map(partOfBlock);
  if (Array.isArray(step.items)) return step.items.filter(isRecord).flatMap(partsOfItem);
  if (isRecord(step.rawJson)) return partsOfBody(step.rawJson);
  const tools = Array.isArray(step.tools) ? step.tools.filter(isRecord) : [];
  return [{ text: step.text }, ...tools.map((tool) => ({ call: callOf(tool) }))];
}

/** A content block of Messages. */
function partOfBlock(block: Json): Part {
  if (block.type === "tool_use") return { call: callOf(block) };
  return block.type === "text" ? { text: block.text } : {};
}

/** An output item of Responses. */
function partsOfItem(item: Json): Part[] {
  if (item.type === "function_call" || item.type === "custom_tool_call") return [{ call: callOf(item) }];
  if (item.type !== "message" || !Array.isArray(item.content)) return [];
  return item.content.filter(isRecord).map(({ text }) => ({ text }));
}

/** A whole reply: of Messages, Responses, or Chat Completions. */
function partsOfBody(body: Json): Part[] {
  if (Array.isArray(body.content)) return body.content.filter(isRecord).map(partOfBlock);
  if (Array.isArray(body.output)) return body.output.filter(isRecord).flatMap(partsOfItem);
  const [choice] = Array.isArray(body.choices) ? body.choices : [];
  const message = isRecord(choice) && isRecord(choice.message) ? choice.message : {};
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls.filter(isRecord) : [];
  return [
    { text: message.content },
    ...calls.map((call) => ({
      call: callOf({ id: call.id, ...(isRecord(call.function) ? call.function : {}) }),
    })),
  ];
}

function callOf(call: Json): RecordedCall {
  const given = call.raw ?? call.args ?? call.arguments ?? call.input ?? {};
  const name = String(call.name ?? "");
  return {
    id: String(call.call_id ?? call.id ?? ""),
    // As the policy is shown it (packages/dialects).
    name: typeof call.namespace === "string" ? `${call.namespace}__${name}` : name,
    arguments: typeof given === "string" ? given : JSON.stringify(given),
  };
}
