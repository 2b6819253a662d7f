/**
 * Owns random replies: parts as a parser gives them, with any text in them, calls of tools the request offered
 * and of others, complete and cut off.
 */
import type { ReplyPart } from "@mortise/capture";
import type { ModelRequest } from "@mortise/dialects";
import type { Random } from "./random.js";

const TEXTS = ["", " ", "ok", "\n\n", "ß\u{1f469}", "\ud800", "</tool_call>", '"', "data: [DONE]\n\n", "{}"];
const ARGUMENTS = [
  "",
  "{",
  "{}",
  "{}{}",
  '{"a":1',
  '{"input":"x"}',
  '{"input":',
  "[1]",
  "null",
  '{"__proto__":1}',
];

export function randomReply({ conversation }: ModelRequest, random: Random): ReplyPart[] {
  const parts: ReplyPart[] = [];
  let calls = 0;
  for (let left = random.int(6); left > 0; left--) {
    const kind = random.int(3);
    if (kind === 0) parts.push({ kind: "text", text: random.pick(TEXTS) });
    if (kind === 1) parts.push({ kind: "reasoning", text: random.pick(TEXTS) });
    if (kind < 2) continue;
    const call = calls++;
    const name = random.chance(0.7)
      ? (conversation.tools[0]?.name ?? "f")
      : random.pick(["f", "", "a b", "\ud800"]);
    parts.push({ kind: "call-start", call, id: `call_t-t0_${call}`, name });
    for (let pieces = random.int(3); pieces > 0; pieces--)
      parts.push({ kind: "call-arguments", call, text: random.pick(ARGUMENTS) });
    const isCut = left === 1 && random.chance(0.3);
    if (!isCut) parts.push({ kind: "call-end", call, tokenEnd: calls });
  }
  return parts;
}
