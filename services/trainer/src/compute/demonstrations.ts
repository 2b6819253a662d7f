/**
 * Owns turning demonstrations into training rows: rendered with the checkpoint's chat template exactly as the
 * proxy will render a request, tokenised, and weighted per token. Does not train.
 *
 * One row holds as many assistant turns as its template lets it: where rendering a later turn changes earlier
 * text (templates that drop old reasoning do), a new row begins, so every reply stands behind the context it
 * would be sampled under (C2).
 */
import { MortiseError } from "@mortise/contracts";
import type { Checkpoint } from "@mortise/policy";
import { z } from "zod";

const Demonstration = z.object({
  messages: z.array(z.looseObject({ role: z.string() })).min(2),
  tools: z.array(z.looseObject({})).optional(),
});
type Demonstration = z.infer<typeof Demonstration>;
type Message = Demonstration["messages"][number];
interface ToolCall {
  readonly function?: Readonly<Record<string, unknown>>;
}

/** One row: the loss weight of predicting ids[t] is weights[t]. */
export interface WeightedRow {
  readonly ids: Int32Array;
  readonly weights: Float32Array;
}

/** A demonstration may need several rows; they stay together in a batch. */
export type DemonstrationRows = readonly WeightedRow[];

export interface RowOptions {
  readonly promptWeight: number;
  readonly maxTokens: number;
}

type Renderer = Pick<Checkpoint, "tokenizer" | "chatTemplate" | "eosIds">;

/**
 * Rows of every line of a JSONL text.
 * @throws MortiseError MORTISE_TRAINER_DEMONSTRATIONS naming the line.
 */
export function demonstrationRows(
  text: string,
  source: string,
  renderer: Renderer,
  options: RowOptions,
): DemonstrationRows[] {
  const all: DemonstrationRows[] = [];
  for (const [i, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const where = `${source}:${i + 1}`;
    const rows = attributed(where, () => rowsOf(parse(line), renderer, options.promptWeight));
    if (rows.length === 0) throw malformed(where, "has no assistant message");
    const longest = Math.max(...rows.map((row) => row.ids.length));
    if (longest > options.maxTokens)
      throw malformed(where, `has ${longest} tokens, the policy's context ${options.maxTokens}`);
    all.push(rows);
  }
  if (all.length === 0) throw malformed(source, "is empty");
  return all;
}

/** Whatever one line brings about is reported as that line's; what concerns the checkpoint is not. */
function attributed<T>(where: string, fn: () => T): T {
  try {
    return fn();
  } catch (cause) {
    if (cause instanceof MortiseError && cause.code === "MORTISE_POLICY_CHECKPOINT") throw cause;
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : (cause as Error).message;
    throw malformed(where, reason.replaceAll("\n", " "), cause);
  }
}

function parse(line: string): Demonstration {
  const given = Demonstration.parse(JSON.parse(line));
  return { ...given, messages: given.messages.map(forTemplate) };
}

function rowsOf({ messages, tools }: Demonstration, renderer: Renderer, promptWeight: number): WeightedRow[] {
  const rows: { ids: number[]; weights: number[] }[] = [];
  for (const [i, message] of messages.entries()) {
    if (message.role !== "assistant") continue;
    const prompt = encode(renderer, messages.slice(0, i), tools, true);
    const reply = replyTokens(renderer, prompt, encode(renderer, messages.slice(0, i + 1), tools, false));
    const row = rows.at(-1);
    if (row && startsWith(prompt, row.ids)) {
      const context = prompt.slice(row.ids.length);
      row.ids.push(...context, ...reply);
      row.weights.push(...context.map(() => promptWeight), ...reply.map(() => 1));
    } else {
      rows.push({
        ids: [...prompt, ...reply],
        weights: [...prompt.map(() => promptWeight), ...reply.map(() => 1)],
      });
    }
  }
  return rows.map((row) => ({ ids: Int32Array.from(row.ids), weights: Float32Array.from(row.weights) }));
}

/** Templates expect the arguments of a call as a mapping; the API carries them as JSON text. */
function forTemplate(message: Message): Message {
  if (!Array.isArray(message.tool_calls)) return message;
  const calls = (message.tool_calls as ToolCall[]).map((call) => {
    const text = call.function?.arguments;
    return typeof text === "string"
      ? { ...call, function: { ...call.function, arguments: JSON.parse(text) } }
      : call;
  });
  return { ...message, tool_calls: calls };
}

function encode(
  renderer: Renderer,
  messages: readonly Message[],
  tools: Demonstration["tools"],
  isPrompt: boolean,
): number[] {
  return [
    ...renderer.tokenizer.encode(
      renderer.chatTemplate.renderMessages(messages, tools, { addGenerationPrompt: isPrompt }),
    ),
  ];
}

/** What the policy would have sampled: everything after the prompt, up to and with the end of the turn. */
function replyTokens({ eosIds }: Renderer, prompt: readonly number[], whole: readonly number[]): number[] {
  if (!startsWith(whole, prompt)) {
    throw new MortiseError({
      code: "MORTISE_POLICY_CHECKPOINT",
      message:
        "The chat template does not continue its own generation prompt: a reply cannot be told from its context.",
      fix: "Use a template whose assistant turns begin with its generation prompt.",
    });
  }
  const end = whole.findLastIndex((id, at) => at >= prompt.length && eosIds.has(id));
  return whole.slice(prompt.length, end < 0 ? whole.length : end + 1);
}

function startsWith(ids: readonly number[], prefix: readonly number[]): boolean {
  return prefix.length <= ids.length && prefix.every((id, at) => ids[at] === id);
}

function malformed(where: string, what: string, cause?: unknown): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRAINER_DEMONSTRATIONS",
    message: `${where} ${what}.`,
    detail: { where },
    ...(cause === undefined ? {} : { cause }),
  });
}
