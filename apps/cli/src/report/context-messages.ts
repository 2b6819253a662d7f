/**
 * Owns taking a rendered context apart into the messages it was made of, for reading. How a chat template marks a
 * message is found by rendering, as everything about templates is; what fits no mark is one message of role unknown.
 * A message that spells a template's own marks is read as two: training never reads contexts this way.
 */
import { randomBytes } from "node:crypto";
import type { Message, ToolCall, ToolSchema } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { Tokenizer } from "@mortise/policy";
import type { Renderer } from "@mortise/rendering";

export type ContextRole = "system" | "user" | "assistant" | "tool" | "unknown";

export interface ContextMessage {
  readonly role: ContextRole;
  readonly text: string;
}

interface Mark {
  readonly role: ContextRole;
  readonly opening: string;
  /** Up to where the message ends; empty where only the next opening tells. */
  readonly closing: string;
}

const PROBE: ToolSchema = {
  name: "probe",
  description: "Probes.",
  parameters: { type: "object", properties: {} },
};
const CALL: ToolCall = { id: "probe0", name: PROBE.name, arguments: "{}" };

/** Random, so that no text of a template holds one. */
const PROBE_WORDS = ["system", "user", "reply", "first", "second"].map(
  (name) => `${name}${randomBytes(8).toString("hex")}`,
) as [string, string, string, string, string];

export class ContextReader {
  private readonly specials: readonly string[];
  private readonly marks: readonly Mark[];

  constructor(renderer: Renderer, tokenizer: Tokenizer) {
    this.specials = messageTokens(renderer, tokenizer);
    this.marks = marksOf(renderer, this.specials);
  }

  /** The messages of a context or of a piece of one; the opening of the next reply at its end is none. */
  messages(text: string): ContextMessage[] {
    const found = this.findOpenings(text);
    const messages = this.between(text.slice(0, found[0]?.at ?? text.length));
    for (const [index, { mark, contentAt }] of found.entries()) {
      const written = text.slice(contentAt, found[index + 1]?.at ?? text.length);
      const end = mark.closing === "" ? -1 : written.indexOf(mark.closing);
      const isNextReply = index === found.length - 1 && mark.role === "assistant" && end < 0;
      if (isNextReply) break;
      messages.push({ role: mark.role, text: end < 0 ? written : written.slice(0, end) });
      if (end >= 0) messages.push(...this.between(written.slice(end + mark.closing.length)));
    }
    return messages;
  }

  /** What stands between two messages is the template's glue, or a message in no form that is known. */
  private between(text: string): ContextMessage[] {
    const said = this.specials.reduce((rest, special) => rest.replaceAll(special, ""), text);
    return said.trim() === "" ? [] : [{ role: "unknown", text }];
  }

  private findOpenings(text: string): { mark: Mark; at: number; contentAt: number }[] {
    const found: { mark: Mark; at: number; contentAt: number }[] = [];
    for (let from = 0; from < text.length; ) {
      let next: { mark: Mark; at: number } | undefined;
      for (const mark of this.marks) {
        const at = text.indexOf(mark.opening, from);
        const isBetter = at >= 0 && (next === undefined || at < next.at || isLonger(mark, at, next));
        if (isBetter) next = { mark, at };
      }
      if (next === undefined) break;
      from = next.at + next.mark.opening.length;
      found.push({ ...next, contentAt: from });
    }
    return found;
  }
}

function isLonger(mark: Mark, at: number, than: { mark: Mark; at: number }): boolean {
  return at === than.at && mark.opening.length > than.mark.opening.length;
}

/** What the template writes around each kind of message; none for a kind it refuses or leaves out. */
function marksOf(renderer: Renderer, specials: readonly string[]): Mark[] {
  const [system, user, reply, first, second] = PROBE_WORDS;
  const said: Message = { role: "user", text: user };
  const answer = (calls: readonly ToolCall[]): Message => ({
    role: "assistant",
    text: reply,
    reasoning: "",
    toolCalls: calls,
  });
  const plain = written(renderer, [{ role: "system", text: system }, said, answer([]), said], []);
  const withoutSystem = plain === "" ? written(renderer, [said, answer([]), said], []) : plain;
  const resultsOf = (calls: readonly ToolCall[], words: readonly string[]) =>
    written(
      renderer,
      [
        said,
        answer(calls),
        ...words.map((word, at) => ({ role: "tool" as const, text: word, toolCallId: calls[at]!.id })),
      ],
      [PROBE],
    );
  // Some templates know one call a turn.
  const results =
    resultsOf([CALL, { ...CALL, id: "probe1" }], [first, second]) || resultsOf([CALL], [second]);
  const around = (text: string, role: ContextRole, word: string): Mark[] => {
    const at = text.lastIndexOf(word);
    const opensAt = at < 0 ? -1 : lastSpecial(text.slice(0, at), specials);
    if (opensAt < 0) return [];
    return [
      { role, opening: text.slice(opensAt, at), closing: closingBehind(text, at + word.length, specials) },
    ];
  };
  const assistant = around(withoutSystem, "assistant", reply);
  return [
    ...around(plain, "system", system),
    ...around(withoutSystem, "user", user),
    ...assistant,
    ...promptOpening(renderer, said, specials).map((opening) => ({
      role: "assistant" as const,
      opening,
      closing: assistant[0]?.closing ?? "",
    })),
    ...resultMarks(results, specials, around),
  ];
}

/** Results in a row may share one opening and one end, with a text of the template between them. */
function resultMarks(
  text: string,
  specials: readonly string[],
  around: (text: string, role: ContextRole, word: string) => Mark[],
): Mark[] {
  const [, , , first, second] = PROBE_WORDS;
  const between = text.slice(text.indexOf(first) + first.length, Math.max(text.indexOf(second), 0));
  const isShared = text.includes(first) && between !== "" && lastSpecial(between, specials) < 0;
  if (!isShared) return around(text, "tool", second);
  const end = closingBehind(text, text.indexOf(second) + second.length, specials);
  return [
    ...around(text, "tool", first).map((mark) => ({ ...mark, closing: end })),
    { role: "tool", opening: between, closing: end },
  ];
}

/** Where the assistant's turn begins, which may hold more than the opening of a finished one. */
function promptOpening(renderer: Renderer, said: Message, specials: readonly string[]): string[] {
  const prompt = renderer.writer.text([said], [], true);
  const opensAt = lastSpecial(prompt, specials);
  return opensAt < 0 ? [] : [prompt.slice(opensAt)];
}

/** Empty when the template refuses the messages. */
function written(renderer: Renderer, messages: readonly Message[], tools: readonly ToolSchema[]): string {
  try {
    return renderer.writer.text(messages, tools, false);
  } catch (error) {
    if (error instanceof MortiseError) return "";
    throw error;
  }
}

function lastSpecial(text: string, specials: readonly string[]): number {
  return Math.max(-1, ...specials.map((special) => text.lastIndexOf(special)));
}

/** Up to and with the next special token. */
function closingBehind(text: string, from: number, specials: readonly string[]): string {
  const ends = specials
    .map((special) => ({ at: text.indexOf(special, from), special }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at);
  const [first] = ends;
  return first === undefined ? "" : text.slice(from, first.at + first.special.length);
}

/** Special tokens that stand around messages: those around reasoning are inside one. */
function messageTokens({ traits: { reasoning } }: Renderer, tokenizer: Tokenizer): string[] {
  const inside = new Set(reasoning ? [reasoning.open, reasoning.close] : []);
  return [...tokenizer.specialIds]
    .flatMap((id) => tokenizer.tokenOf(id) ?? [])
    .filter((text) => !inside.has(text));
}
