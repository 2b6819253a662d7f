/**
 * Owns what is proved about a chat template before it is used: whether what it writes after a reply depends on
 * nothing earlier, how it marks reasoning, what it refuses. Everything is found by rendering, nothing by the
 * name of a model. Run once per checkpoint; does not choose policies (see renderer.ts).
 */
import type { Message, ToolSchema } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { Tokenizer } from "@mortise/policy";
import type { ReasoningMarks } from "../tools/types.js";
import type { TemplateWriter } from "./template-writer.js";

export interface TemplateTraits {
  /** What follows a reply is written the same after any history, and begins with an end-of-turn token. */
  readonly isTailStable: boolean;
  /** Also, a whole rendering equals the earlier one, the reply, and that tail: earlier turns are never rewritten. */
  readonly isAppendOnly: boolean;
  /** What follows a reply does not depend on the tools. */
  readonly tailIgnoresTools: boolean;
  /** A system message behind a reply is rendered where it stands. */
  readonly takesLateSystem: boolean;
  /** How the template marks reasoning; undefined when it knows none. */
  readonly reasoning: ReasoningMarks | undefined;
  /** A reply begins inside reasoning, because the template opens it. */
  readonly opensInReasoning: boolean;
  /** A reply has no reasoning, because the template closes it in the prompt. */
  readonly closesReasoning: boolean;
}

export interface TraitParts {
  /** Source of the template. */
  readonly source: string;
  readonly writer: TemplateWriter;
  readonly tokenizer: Tokenizer;
  readonly eosIds: ReadonlySet<number>;
}

const REASONING_MARKS: readonly ReasoningMarks[] = [{ open: "<think>", close: "</think>" }];

const THOUGHT = "mortise0thought";
const REPLY = "mortise0probe0reply";
const user = (text: string): Message => ({ role: "user", text });
const assistant = (text: string, reasoning = "", calls = 0) => ({
  role: "assistant" as const,
  text,
  reasoning,
  toolCalls: Array.from({ length: calls }, (_, at) => ({
    id: `probe${at}`,
    name: PROBE_TOOL.name,
    arguments: '{"first": "one"}',
  })),
});
const result: Message = { role: "tool", text: "ok", toolCallId: "probe0" };
const RULES = "mortise0rules";
const system: Message = { role: "system", text: RULES };

const PROBE_TOOL: ToolSchema = {
  name: "probe",
  description: "Probes.",
  parameters: { type: "object", properties: { first: { type: "string" } } },
};

/** Histories up to a reply; what a template may look back at. */
const HISTORIES: readonly (readonly Message[])[] = [
  [user("first")],
  [system, user("first")],
  [user("first"), assistant("a"), user("second")],
  [user("first"), assistant("a", THOUGHT), user("second")],
  [user("first"), assistant("", THOUGHT, 1), result],
  [user("first"), assistant("a", "", 1), result, assistant("b"), user("second")],
];

/** What may follow a reply. The first is the least that any template must take. */
const FOLLOWERS: readonly (readonly Message[])[] = [
  [user("next")],
  [user("next"), user("again")],
  [result],
  [result, result],
  [result, user("next")],
];

const LATE_SYSTEM: readonly Message[] = [system, user("next")];

export function templateTraits(parts: TraitParts): TemplateTraits {
  const { writer } = parts;
  const prompt = attempt(() => writer.text([user("first")], [], true)) ?? "";
  const reasoning = REASONING_MARKS.find(
    (marks) => isShown(writer, marks) || opensIn(prompt, marks) || isNamed(parts.source, marks),
  );
  return {
    isTailStable: isTailStable(parts),
    isAppendOnly: isAppendOnly(parts),
    tailIgnoresTools: FOLLOWERS.every((after) => {
      const without = attempt(() => writer.tail(after, []));
      return without === attempt(() => writer.tail(after, [PROBE_TOOL]));
    }),
    takesLateSystem: takesLateSystem(parts),
    reasoning,
    opensInReasoning: reasoning !== undefined && opensIn(prompt, reasoning),
    closesReasoning: reasoning !== undefined && prompt.trimEnd().endsWith(reasoning.close),
  };
}

/** Whether the template writes text of no JSON object as the arguments of a call, unchanged. */
export function takesArgumentText(writer: TemplateWriter): boolean {
  const broken = '{"mortise0": broken';
  const reply = assistant("", "", 1);
  const calls = reply.toolCalls.map((call) => ({ ...call, arguments: broken }));
  const text = attempt(() =>
    writer.text([user("first"), { ...reply, toolCalls: calls }], [PROBE_TOOL], false),
  );
  return text?.includes(broken) ?? false;
}

function isTailStable(parts: TraitParts): boolean {
  return FOLLOWERS.every((after) => {
    const stable = HISTORIES.map((before) => isTailStableFor(parts, before, after));
    // What the template refuses whole it never has to extend; a user message it must take.
    if (stable.every((one) => one === undefined)) return after !== FOLLOWERS[0];
    return !stable.includes(false) && isCutExact(parts, after);
  });
}

/** In text; undefined when the template refuses the conversation. */
function isTailStableFor(
  { writer }: TraitParts,
  before: readonly Message[],
  after: readonly Message[],
): boolean | undefined {
  for (const tools of [[], [PROBE_TOOL]]) {
    const tail = attempt(() => writer.tail(after, tools));
    for (const reply of [assistant(REPLY), assistant(REPLY, THOUGHT), assistant(REPLY, "", 1)]) {
      const whole = attempt(() => writer.text([...before, reply, ...after], tools, true));
      if (whole === undefined) return undefined;
      if (tail === undefined || !whole.endsWith(tail)) return false;
      if (reply.toolCalls.length === 0 && !whole.endsWith(REPLY + tail)) return false;
    }
  }
  return true;
}

/** In ids: the tail begins with an end-of-turn token, and encoding it apart gives what encoding all gives. */
function isCutExact({ writer, tokenizer, eosIds }: TraitParts, after: readonly Message[]): boolean {
  const tail = writer.tail(after, []);
  const ids = tokenizer.encode(tail);
  if (ids[0] === undefined || !eosIds.has(ids[0])) return false;
  const all = tokenizer.encode(writer.text([...HISTORIES[0]!, assistant(REPLY), ...after], [], true));
  return ids.every((id, at) => all[all.length - ids.length + at] === id);
}

function isAppendOnly({ writer }: TraitParts): boolean {
  return HISTORIES.every((before) =>
    FOLLOWERS.every((after) => {
      const parent = attempt(() => writer.text(before, [], true));
      const whole = attempt(() => writer.text([...before, assistant(REPLY), ...after], [], true));
      if (parent === undefined || whole === undefined) return after !== FOLLOWERS[0];
      return whole === parent + REPLY + writer.tail(after, []);
    }),
  );
}

/** Shown where it stands: some templates drop it without a word. */
function takesLateSystem(parts: TraitParts): boolean {
  const tail = attempt(() => parts.writer.tail(LATE_SYSTEM, []));
  return tail?.includes(RULES) === true && isTailStableFor(parts, HISTORIES[0]!, LATE_SYSTEM) === true;
}

/** A template may take reasoning out of history and still teach the marks. */
function isNamed(source: string, { open, close }: ReasoningMarks): boolean {
  return source.includes(open) && source.includes(close);
}

function isShown(writer: TemplateWriter, { open, close }: ReasoningMarks): boolean {
  const text = attempt(() => writer.text([user("first"), assistant("a", THOUGHT)], [], false)) ?? "";
  const at = text.indexOf(THOUGHT);
  return at >= 0 && text.slice(0, at).includes(open) && text.slice(at).includes(close);
}

function opensIn(prompt: string, { open }: ReasoningMarks): boolean {
  return prompt.trimEnd().endsWith(open);
}

/** What the template writes, or undefined when it refuses. */
function attempt(write: () => string): string | undefined {
  try {
    return write();
  } catch (error) {
    if (error instanceof MortiseError) return undefined;
    throw error;
  }
}
