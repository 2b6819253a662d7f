/**
 * Owns a client of the Messages stream, as strict as the strictest: events in order, one block open at a time,
 * indexes without gaps. Builds the message a harness would keep.
 */
export interface StreamEvent {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a server sent, whatever it is
  readonly [field: string]: any;
}

/** The events of a stream; the name in `event:` and the type in `data:` must agree. */
export function eventsOf(stream: string): StreamEvent[] {
  const blocks = stream.split("\n\n");
  if (blocks.pop() !== "") throw new Error("the stream ends within an event");
  return blocks.map((block) => {
    const [name, data, ...more] = block.split("\n");
    if (!name?.startsWith("event: ") || !data?.startsWith("data: ") || more.length > 0)
      throw new Error(`not an event: ${block}`);
    const event = JSON.parse(data.slice("data: ".length)) as StreamEvent;
    if (event.type !== name.slice("event: ".length)) throw new Error(`${name} carries ${event.type}`);
    return event;
  });
}

/** The message a stream adds up to. Call input stays text, as `input_json`. Throws on any breach of the protocol. */
// biome-ignore lint/suspicious/noExplicitAny: a message as JSON
export function messageOf(stream: string): any {
  const events = eventsOf(stream).filter((event) => event.type !== "ping");
  const first = events.shift();
  if (first?.type !== "message_start") throw new Error("the stream does not begin with message_start");
  const message = structuredClone(first.message);
  let open: number | undefined;
  let isOver = false;
  for (const event of events) {
    if (isOver) throw new Error(`${event.type} after message_stop`);
    switch (event.type) {
      case "content_block_start":
        if (open !== undefined) throw new Error("a block begins within another");
        if (event.index !== message.content.length) throw new Error(`block ${event.index} out of order`);
        open = event.index;
        message.content.push({ ...event.content_block });
        break;
      case "content_block_delta":
        if (open !== event.index) throw new Error(`delta for block ${event.index}, which is not open`);
        apply(message.content[event.index], event.delta);
        break;
      case "content_block_stop":
        if (open !== event.index) throw new Error(`stop of block ${event.index}, which is not open`);
        open = undefined;
        break;
      case "message_delta":
        if (open !== undefined) throw new Error("message_delta within a block");
        Object.assign(message, event.delta);
        Object.assign(message.usage, event.usage);
        break;
      case "message_stop":
        isOver = true;
        break;
      default:
        throw new Error(`unexpected ${event.type}`);
    }
  }
  if (!isOver) throw new Error("the stream has no message_stop");
  return message;
}

// biome-ignore lint/suspicious/noExplicitAny: blocks and deltas as JSON
function apply(block: any, delta: any): void {
  const kinds: Record<string, [type: string, field: string, from: string]> = {
    text_delta: ["text", "text", "text"],
    thinking_delta: ["thinking", "thinking", "thinking"],
    signature_delta: ["thinking", "signature", "signature"],
    input_json_delta: ["tool_use", "input_json", "partial_json"],
  };
  const kind = kinds[delta.type];
  if (!kind || kind[0] !== block.type) throw new Error(`${delta.type} in a ${block.type} block`);
  block[kind[1]] = (block[kind[1]] ?? "") + delta[kind[2]];
}
