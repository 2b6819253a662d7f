/**
 * Owns the conversations of the benchmarks: an agent with ten tools, or one that only talks, whose history grows
 * by one reply and one result a turn.
 */
import type { Prose } from "./checkpoint.js";

export interface ConversationPlan {
  /** Tokens of what it begins with: system and user message. */
  readonly openingTokens: number;
  /** Tokens of each result, or of what the user says next. */
  readonly resultTokens: number;
  readonly hasTools: boolean;
}

/** What the tools' schemas take in the prompt, about. */
const TOOL_TOKENS = 1_800;
/** What a turn adds besides its result: the call or the text, and what the template writes around both. */
const TOKENS_AROUND = { call: 105, text: 16 };

/** Grows to about `finalTokens` of context at the last of `turns` turns. */
export function growingTo(finalTokens: number, turns: number, reply: "call" | "text"): ConversationPlan {
  const openingTokens = Math.min(800, finalTokens / 4);
  const toolTokens = reply === "call" ? TOOL_TOKENS : 0;
  const perTurn = (finalTokens - openingTokens - toolTokens) / (turns - 1);
  const resultTokens = Math.max(5, Math.round(perTurn - TOKENS_AROUND[reply]));
  return { openingTokens, resultTokens, hasTools: reply === "call" };
}

type Message = Record<string, unknown>;

const CALL = { name: "bash", arguments: '{"command": "sed -n 1,120p src/session.ts"}' };
const TOOLS = Array.from({ length: 10 }, (_, at) => ({
  type: "function",
  function: {
    name: at === 0 ? CALL.name : `tool_${at}`,
    description: "Runs a command in the repository and returns what it printed, cut after some lines.",
    parameters: {
      type: "object",
      properties: {
        command: { type: "string", description: "The command." },
        timeout: { type: "integer", description: "Seconds after which it is ended." },
      },
      required: ["command"],
    },
  },
}));

export class BenchConversation {
  private readonly messages: Message[];
  private readonly prose: Prose;
  private readonly plan: ConversationPlan;

  constructor(prose: Prose, plan: ConversationPlan) {
    this.prose = prose;
    this.plan = plan;
    this.messages = [
      { role: "system", content: prose.tokens(plan.openingTokens * 0.75) },
      { role: "user", content: prose.tokens(plan.openingTokens * 0.25) },
    ];
  }

  body(): string {
    return JSON.stringify({
      model: "policy",
      messages: this.messages,
      ...(this.plan.hasTools && { tools: TOOLS }),
      stream: true,
      stream_options: { include_usage: true },
    });
  }

  /** The reply as a harness sends it back, and what its call printed; after a text, what the user says next. */
  takeReply({ text, callId }: { readonly text: string; readonly callId: string | undefined }): void {
    const result = this.prose.tokens(this.plan.resultTokens);
    if (callId === undefined)
      this.messages.push({ role: "assistant", content: text }, { role: "user", content: result });
    else
      this.messages.push(
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: callId, type: "function", function: CALL }],
        },
        { role: "tool", tool_call_id: callId, content: result },
      );
  }
}
