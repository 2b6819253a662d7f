/**
 * Owns telling whether bytes are a reply of a protocol: the form its clients rely on, no more. Says what is
 * wrong, or nothing.
 */
import type { DialectName } from "@mortise/dialects";

interface Event {
  readonly name: string | undefined;
  readonly data: string;
}

type Json = Record<string, unknown>;

export function problemOfWhole(dialect: DialectName, text: string): string | undefined {
  const reply = jsonOf(text);
  if (!reply) return "not a JSON object";
  if (dialect === "openai-chat") {
    const [choice] = listOf(reply.choices);
    return isJson(choice?.message) && choice.message.role === "assistant" ? undefined : "no message";
  }
  if (dialect === "anthropic-messages") {
    const isMessage = reply.type === "message" && Array.isArray(reply.content) && isJson(reply.usage);
    return isMessage && typeof reply.stop_reason === "string" ? undefined : "no ended message";
  }
  return reply.object === "response" && Array.isArray(reply.output) && isJson(reply.usage)
    ? undefined
    : "no ended response";
}

/** Of a stream that has ended, with its final event or with the event of a failure. */
export function problemOfStream(dialect: DialectName, text: string): string | undefined {
  if (!text.endsWith("\n\n")) return "the last event is not finished";
  const events = text.slice(0, -2).split("\n\n").map(eventOf);
  const bodies = events.filter(({ data }) => data !== "[DONE]").map(({ data }) => jsonOf(data));
  if (bodies.some((body) => body === undefined)) return "an event is not a JSON object";
  if (dialect === "openai-chat") return problemOfChunks(events, bodies as Json[]);
  if (events.some(({ name }, at) => name !== bodies[at]!.type)) return "an event is not named by its type";
  return dialect === "anthropic-messages"
    ? problemOfBlocks(bodies as Json[])
    : problemOfItems(bodies as Json[]);
}

/** Of a refusal: a status for errors, and the error object of the protocol. */
export function problemOfRefusal(dialect: DialectName, status: number, text: string): string | undefined {
  if (status < 400 || status > 599) return `status ${status}`;
  const reply = jsonOf(text);
  if (!reply || !isJson(reply.error)) return "no error object";
  if (typeof reply.error.message !== "string" || reply.error.message === "") return "no message";
  if (typeof reply.error.type !== "string") return "no type";
  return dialect === "anthropic-messages" && reply.type !== "error" ? "not of type error" : undefined;
}

function problemOfChunks(events: readonly Event[], chunks: readonly Json[]): string | undefined {
  if (chunks.at(-1)?.error !== undefined) return undefined;
  if (events.at(-1)!.data !== "[DONE]") return "no [DONE]";
  const choices = chunks.flatMap((chunk) => listOf(chunk.choices));
  if (choices.some((choice) => !isJson(choice.delta))) return "a choice without delta";
  const ends = choices.filter((choice) => choice.finish_reason !== null);
  return ends.length === 1 ? undefined : `${ends.length} finish reasons`;
}

function problemOfBlocks(events: readonly Json[]): string | undefined {
  let open: unknown;
  let blocks = 0;
  for (const { type, index } of events) {
    if (type === "content_block_start") {
      if (open !== undefined) return `block ${index} starts inside block ${open}`;
      if (index !== blocks++) return `block ${index} has another number than its place`;
      open = index;
    }
    if (type === "content_block_delta" && index !== open)
      return `a delta of block ${index}, which is not open`;
    if (type !== "content_block_stop") continue;
    if (index !== open) return `block ${index} stops and is not open`;
    open = undefined;
  }
  const last = events.at(-1)?.type;
  if (last === "error") return undefined;
  if (open !== undefined) return `block ${open} does not stop`;
  if (events[0]?.type !== "message_start") return "no message_start";
  return last === "message_stop" ? undefined : `ends with ${last}`;
}

function problemOfItems(events: readonly Json[]): string | undefined {
  const numbers = events.map((event) => event.sequence_number);
  if (numbers.some((number, at) => number !== (numbers[0] as number) + at)) return "numbers do not follow";
  const last = events.at(-1)!;
  if (last.type === "response.failed") return undefined;
  if (last.type !== "response.completed") return `ends with ${last.type}`;
  const added = events.filter(({ type }) => type === "response.output_item.added").length;
  const done = events.filter(({ type }) => type === "response.output_item.done").length;
  const output = isJson(last.response) ? listOf(last.response.output).length : -1;
  // A call that was cut off stays begun: clients run only what is done.
  const fits = done === output && (added === done || added === done + 1);
  return fits ? undefined : `${added} items begun, ${done} done, ${output} in the end`;
}

function eventOf(text: string): Event {
  const lines = text.split("\n");
  const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  return { name: field("event"), data: field("data") ?? "" };
}

function jsonOf(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isJson(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function listOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isJson) : [];
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
