/** Owns reading server-sent events: bytes in, the data of each event out. Event names and ids are ignored. */
import { MortiseError } from "@mortise/contracts";

/** No event of an engine is larger: routed experts of 200,000 tokens come in one, at 86 MB of base64. */
const MAX_EVENT_CHARACTERS = 256 * 1024 * 1024;

/** @throws MortiseError MORTISE_PROVIDER_ENGINE for an event beyond all bounds */
export async function* readEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const data: string[] = [];
  let pending: string[] = [];
  let pendingLength = 0;
  for await (const chunk of bytes) {
    const lines = decoder.decode(chunk, { stream: true }).split("\n");
    const unfinished = lines.pop()!;
    for (const line of lines) {
      const whole = pending.length > 0 ? pending.join("") + line : line;
      pending = [];
      pendingLength = 0;
      const text = whole.endsWith("\r") ? whole.slice(0, -1) : whole;
      if (text.startsWith("data:")) data.push(text.slice(text[5] === " " ? 6 : 5));
      else if (text === "" && data.length > 0) yield data.splice(0).join("\n");
    }
    pending.push(unfinished);
    pendingLength += unfinished.length;
    if (pendingLength > MAX_EVENT_CHARACTERS)
      throw new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "An event is beyond all bounds." });
  }
}
