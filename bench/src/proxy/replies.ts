/**
 * Owns what the scripted engine says in the benchmarks: a text of n tokens, or one tool call. Every server of a
 * comparison says the same, from the same ids.
 */
import type { ReplyPart } from "@mortise/capture";
import { FinishReason } from "@mortise/contracts";
import { chatDialect, type ModelRequest } from "@mortise/dialects";
import type { Checkpoint } from "@mortise/policy";
import type { ScriptedReply } from "@mortise/proxy";

export interface ReplyPlan {
  readonly kind: "text" | "call";
  /** Of a text: its tokens, the end-of-turn token not counted. */
  readonly tokens: number;
  readonly firstTokenMs: number;
  readonly tokenMs: number;
}

const CALL =
  '<tool_call>\n{"name": "bash", "arguments": {"command": "sed -n 1,120p src/session.ts"}}\n</tool_call>';
const WORD = " ok";

export function scriptedReply({ tokenizer }: Checkpoint, plan: ReplyPlan): ScriptedReply {
  const end = tokenizer.idOf("<|im_end|>")!;
  const word = tokenizer.encode(WORD)[0]!;
  const said = plan.kind === "call" ? [...tokenizer.encode(CALL)] : Array<number>(plan.tokens).fill(word);
  return { ids: [...said, end], firstTokenMs: plan.firstTokenMs, tokenMs: plan.tokenMs };
}

/** The reply as OpenAI chunks: one for each id of a text, for servers that parse nothing. */
export interface CannedStream {
  readonly opening: string;
  readonly perId: (ordinal: number) => string;
  readonly ending: string;
}

export function cannedStream(plan: ReplyPlan): CannedStream {
  const request = {
    ...chatDialect.read({
      messages: [{ role: "user", content: "x" }],
      stream: true,
      stream_options: { include_usage: true },
    }),
  } satisfies ModelRequest;
  const writer = chatDialect.writer({ turn: "bench", model: "policy", createdMs: Date.now() }, request);
  const opening = writer.opening(1);
  const pieces = piecesOf(plan).map((parts) => writer.parts(parts));
  const ending = writer.ending({
    finish: FinishReason.STOP,
    promptTokens: 1,
    cachedTokens: 0,
    completionTokens: pieces.length,
    reasoningTokens: 0,
  });
  return { opening, perId: (ordinal) => pieces[ordinal] ?? "", ending };
}

function piecesOf(plan: ReplyPlan): ReplyPart[][] {
  if (plan.kind === "text") return Array.from({ length: plan.tokens }, () => [{ kind: "text", text: WORD }]);
  return [
    [
      { kind: "call-start", call: 0, id: "call_bench", name: "bash" },
      { kind: "call-arguments", call: 0, text: '{"command": "sed -n 1,120p src/session.ts"}' },
      { kind: "call-end", call: 0, tokenEnd: 1 },
    ],
  ];
}
