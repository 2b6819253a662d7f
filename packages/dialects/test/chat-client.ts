/** Owns a client of the Chat Completions stream: adds its chunks up to the message a harness would keep. */
// biome-ignore lint/suspicious/noExplicitAny: what a server sent, whatever it is
type Json = any;

export interface Added {
  readonly chunks: Json[];
  readonly content: string;
  readonly reasoning: string;
  readonly calls: Json[];
  /** Every finish reason that was sent. */
  readonly finishes: string[];
  readonly usage: Json;
  readonly isDone: boolean;
}

export function addUp(stream: string): Added {
  const lines = stream.split("\n\n");
  if (lines.pop() !== "") throw new Error("the stream ends within an event");
  const data = lines.map((line) => {
    if (!line.startsWith("data: ") || line.includes("\n")) throw new Error(`not an event: ${line}`);
    return line.slice("data: ".length);
  });
  const isDone = data.at(-1) === "[DONE]";
  const chunks: Json[] = data.slice(0, isDone ? -1 : undefined).map((one) => JSON.parse(one));
  const choices: Json[] = chunks.flatMap((chunk) => chunk.choices ?? []);
  const calls: Json[] = [];
  for (const { delta } of choices) for (const call of delta.tool_calls ?? []) addCall(calls, call);
  const joined = (field: string) => choices.map(({ delta }) => delta[field] ?? "").join("");
  return {
    chunks,
    content: joined("content"),
    reasoning: joined("reasoning_content"),
    calls,
    finishes: choices.flatMap(({ finish_reason }) => finish_reason ?? []),
    usage: chunks.find(({ usage }) => usage)?.usage,
    isDone,
  };
}

/** A call begins with its id and name, and continues with neither. */
function addCall(calls: Json[], { index, ...delta }: Json): void {
  if (calls[index] === undefined) {
    if (index !== calls.length) throw new Error(`call ${index} out of order`);
    if (!delta.id || !delta.type) throw new Error("a call begins without its id");
    calls[index] = structuredClone(delta);
    return;
  }
  if (delta.id !== undefined || delta.type !== undefined) throw new Error("a call begins twice");
  if (delta.function) calls[index].function.arguments += delta.function.arguments;
  if (delta.custom) calls[index].custom.input += delta.custom.input;
}
