/**
 * Owns a client of the Responses stream, as strict as the strictest: numbers without gaps, items in order and
 * one open at a time, what is closed equal to what was streamed. Runs what Codex runs: calls that were closed.
 */
// biome-ignore lint/suspicious/noExplicitAny: what a server sent, whatever it is
type Json = any;

export interface StreamEvent {
  readonly type: string;
  readonly [field: string]: Json;
}

/** The events of a stream; the name in `event:` and the type in `data:` must agree. */
export function eventsOf(stream: string): StreamEvent[] {
  const blocks = stream.split("\n\n");
  if (blocks.pop() !== "") throw new Error("the stream ends within an event");
  return blocks.map((block, at) => {
    const [name, data, ...more] = block.split("\n");
    if (!name?.startsWith("event: ") || !data?.startsWith("data: ") || more.length > 0)
      throw new Error(`not an event: ${block}`);
    const event = JSON.parse(data.slice("data: ".length)) as StreamEvent;
    if (event.type !== name.slice("event: ".length)) throw new Error(`${name} carries ${event.type}`);
    if (event.sequence_number !== at) throw new Error(`event ${at} has number ${event.sequence_number}`);
    return event;
  });
}

/** Fields of an item by the delta event that fills them, and the event that repeats them whole. */
const DELTAS: Readonly<Record<string, { done: string; field: string; of: (item: Json) => string }>> = {
  "response.output_text.delta": {
    done: "response.output_text.done",
    field: "text",
    of: (item) => item.content[0].text,
  },
  "response.reasoning_summary_text.delta": {
    done: "response.reasoning_summary_text.done",
    field: "text",
    of: (item) => item.summary[0].text,
  },
  "response.function_call_arguments.delta": {
    done: "response.function_call_arguments.done",
    field: "arguments",
    of: (item) => item.arguments,
  },
  "response.custom_tool_call_input.delta": {
    done: "response.custom_tool_call_input.done",
    field: "input",
    of: (item) => item.input,
  },
};

/** A finished reply, checked. Throws on any breach of the protocol. */
export function responseOf(stream: string): { response: Json; opened: Json[]; calls: Json[] } {
  const events = eventsOf(stream);
  const [created, inProgress] = events;
  if (created?.type !== "response.created" || inProgress?.type !== "response.in_progress")
    throw new Error("the stream does not begin as a response does");
  const completed = events.pop()!;
  if (completed.type !== "response.completed") throw new Error(`the stream ends with ${completed.type}`);
  const opened: Json[] = [];
  const closed: Json[] = [];
  let open: { id: string; index: number; text: string } | undefined;
  for (const event of events.slice(2)) {
    if (event.type === "response.in_progress") continue;
    if (event.type === "response.output_item.added") {
      // A call that was cut off is never closed, and nothing follows it.
      if (open) throw new Error("an item is opened within another");
      if (event.output_index !== opened.length) throw new Error(`item ${event.output_index} out of order`);
      open = { id: event.item.id, index: event.output_index, text: "" };
      opened.push(event.item);
      continue;
    }
    if (!open || event.output_index !== open.index) throw new Error(`${event.type} outside its item`);
    if (event.type === "response.output_item.done") {
      const kind = Object.values(DELTAS).find(({ of }) => textIn(event.item, of) !== undefined);
      if (event.item.id !== open.id) throw new Error("an item is closed under another id");
      if (kind && textIn(event.item, kind.of) !== open.text) throw new Error("deltas and item differ");
      closed.push(event.item);
      open = undefined;
      continue;
    }
    if (event.item_id !== open.id) throw new Error(`${event.type} names ${event.item_id}`);
    if (DELTAS[event.type]) open.text += event.delta;
    const whole = Object.values(DELTAS).find(({ done }) => done === event.type);
    if (whole && event[whole.field] !== open.text) throw new Error("deltas and their end differ");
  }
  const { response } = completed;
  if (JSON.stringify(response.output) !== JSON.stringify(closed))
    throw new Error("output differs from items");
  return { response, opened, calls: closed.filter(({ type }) => type.endsWith("_call")) };
}

function textIn(item: Json, of: (item: Json) => string): string | undefined {
  try {
    return of(item);
  } catch {
    return undefined;
  }
}
