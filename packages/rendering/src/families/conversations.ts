/**
 * Owns the conversations a template is verified with: one for each thing harnesses do, and a generated number
 * that mix them. Deterministic: the same seed gives the same conversations.
 */
import type { Conversation, Message, ToolSchema } from "@mortise/capture";

export interface NamedConversation extends Conversation {
  readonly name: string;
}

/** What a family cannot say is left out of its conversations. */
export interface ConversationLimits {
  readonly hasCalls: boolean;
  readonly isSingleCall: boolean;
  readonly hasReasoning: boolean;
  readonly seed: number;
  /** Generated ones, beside the named. */
  readonly generated: number;
}

const TOOLS: readonly ToolSchema[] = [
  {
    name: "read",
    description: "Reads a file.",
    parameters: {
      type: "object",
      properties: { path: { type: "string" }, lines: { type: "array", items: { type: "integer" } } },
      required: ["path"],
    },
  },
  {
    name: "edit",
    description: "Replaces text.\nOnce.",
    parameters: {
      type: "object",
      properties: {
        path: { type: "string" },
        old: { type: "string" },
        count: { type: "integer" },
        all: { type: "boolean" },
        options: { type: "object" },
      },
    },
  },
  { name: "finish", description: "Ends the work.", parameters: { type: "object", properties: {} } },
];

const CALLS: readonly (readonly [string, object])[] = [
  ["read", { path: "src/main.ts" }],
  ["read", { path: 'a b/"c".py', lines: [1, 20] }],
  ["edit", { path: "x", old: "  if (a < b) {\n\treturn '\\n';\n}\n", count: 2, all: true }],
  ["edit", { path: "ä/漢字.txt", old: "🙂 </tool> {{ x }}", options: { deep: [{ k: null }] } }],
  ["finish", {}],
];

const TEXTS = [
  "Fix the failing test.",
  "Done.",
  "Line one\n\n  indented\n- item",
  "Größe: 漢字 テスト 한국어 العربية 🙂👩‍👩‍👧 é",
  "const x = y; // <b>&amp;</b> {% raw %}",
  "a".repeat(300),
  "1234567890 3.14 0x1F",
];
const THOUGHTS = ["Look at the test first.", "It sums\nwrongly:\n\n1 + 1 = 3.", "なるほど。"];

const user = (text: string): Message => ({ role: "user", text });
const system = (text: string): Message => ({ role: "system", text });

export function verificationConversations(limits: ConversationLimits): NamedConversation[] {
  const calls = new CallNumbering();
  const said = (text: string, reasoning = "", ...made: number[]): Message =>
    calls.reply(text, reasoning, made);
  const plain: Record<string, Message[]> = {
    "one reply": [user(TEXTS[0]!), said("Done."), user("Thanks.")],
    "many turns": [user("a"), said("b"), user("c"), said("d"), user("e"), said("f"), user("g")],
    system: [system("Be brief."), user("a"), said("b"), user("c")],
    "late system": [
      system("Be brief."),
      user("a"),
      said("b"),
      system("Be briefer."),
      user("c"),
      said("d"),
      user("e"),
    ],
    "early system messages": [user("a"), system("one"), system("two"), said("b"), user("c")],
    reasoning: [user("a"), said("b", THOUGHTS[0]), user("c"), said("d", THOUGHTS[1]), user("e")],
    unicode: [user(TEXTS[3]!), said(TEXTS[3]!), user(TEXTS[4]!), said(TEXTS[4]!), user(TEXTS[2]!)],
    "white space": [user("  a \n"), said("b  c\n\nd"), user("\n\ne\t")],
  };
  const withTools: Record<string, Message[]> = {
    "one call": [user("a"), said("", "", 0), calls.result(), said("Done."), user("b")],
    "call behind text": [user("a"), said("I read it.", "", 1), calls.result(), said("b"), user("c")],
    "calls in a row": [
      user("a"),
      said("", "", 0),
      calls.result(),
      said("", "", 2),
      calls.result(),
      said("b"),
      user("c"),
    ],
    "one task, with reasoning": [
      user("a"),
      said("", THOUGHTS[0], 0),
      calls.result(),
      said("", THOUGHTS[1], 3),
      calls.result(),
    ],
    "one task, without": [user("a"), said("", "", 0), calls.result(), said("", "", 3), calls.result()],
    "call without arguments": [user("a"), said("", "", 4), calls.result(), said("b"), user("c")],
    "call behind reasoning": [
      user("a"),
      said("", THOUGHTS[1], 3),
      calls.result(),
      said("b", THOUGHTS[2]),
      user("c"),
    ],
    "result, then system": [
      user("a"),
      said("", "", 0),
      calls.result(),
      system("Hurry."),
      said("b"),
      user("c"),
    ],
  };
  const parallel: Record<string, Message[]> = {
    "parallel calls": [user("a"), said("", "", 0, 1, 2), ...calls.results(), said("b"), user("c")],
  };
  const list: NamedConversation[] = [];
  const add = (set: Record<string, Message[]>, tools: readonly ToolSchema[]) => {
    for (const [name, messages] of Object.entries(set))
      list.push({ name, messages: limits.hasReasoning ? messages : withoutReasoning(messages), tools });
  };
  add(plain, []);
  if (limits.hasCalls) add(withTools, TOOLS);
  if (limits.hasCalls && !limits.isSingleCall) add(parallel, TOOLS);
  const draw = randomDraws(limits.seed);
  for (let at = 0; at < limits.generated; at++) list.push(generate(`generated ${at}`, limits, draw));
  return list;
}

function generate(
  name: string,
  limits: ConversationLimits,
  draw: (below: number) => number,
): NamedConversation {
  const calls = new CallNumbering();
  const pick = <T>(from: readonly T[]): T => from[draw(from.length)]!;
  const messages: Message[] = draw(2) === 0 ? [system(pick(TEXTS))] : [];
  messages.push(user(pick(TEXTS)));
  const turns = 2 + draw(6);
  for (let turn = 0; turn < turns; turn++) {
    const most = limits.hasCalls ? (limits.isSingleCall ? 1 : 3) : 0;
    const made = Array.from({ length: draw(most + 1) }, () => draw(CALLS.length));
    const text = made.length > 0 && draw(2) === 0 ? "" : pick(TEXTS);
    messages.push(
      calls.reply(text, draw(3) === 0 && limits.hasReasoning ? pick(THOUGHTS) : "", made),
      ...calls.results(),
    );
    if (draw(6) === 0) messages.push(system(pick(TEXTS)));
    if (made.length === 0 || turn === turns - 1) messages.push(user(pick(TEXTS)));
  }
  return { name, messages, tools: limits.hasCalls ? TOOLS : [] };
}

function withoutReasoning(messages: readonly Message[]): Message[] {
  return messages.map((message) => (message.role === "assistant" ? { ...message, reasoning: "" } : message));
}

/** Numbers the calls of a conversation and answers those that are open. */
class CallNumbering {
  private next = 0;
  private open: string[] = [];

  reply(text: string, reasoning: string, made: readonly number[]): Message {
    const toolCalls = made.map((which) => {
      const [name, given] = CALLS[which]!;
      return { id: `c${this.next++}`, name, arguments: JSON.stringify(given) };
    });
    this.open = toolCalls.map((call) => call.id);
    return { role: "assistant", text, reasoning, toolCalls };
  }

  result(): Message {
    return { role: "tool", text: `ok\n${TEXTS[2]}`, toolCallId: this.open.shift() ?? "c0" };
  }

  results(): Message[] {
    return Array.from({ length: this.open.length }, () => this.result());
  }
}

/** Whole numbers below a bound, from a seed (linear congruential, high bits). */
function randomDraws(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
