/**
 * Owns the assistant message of a Chat Completions reply that is not streamed. A call that was cut off is in
 * it only if nothing can run it: its harness answers with an error and goes on.
 */
import type { ReplyPart } from "@mortise/capture";
import { isUnrunnable } from "../call-starts.js";
import { CustomInput } from "../custom-input.js";
import type { ToolTarget } from "../types.js";

interface WholeCall {
  readonly id: string;
  readonly name: string;
  text: string;
  isComplete: boolean;
}

export function wholeMessage(parts: readonly ReplyPart[], targets: ReadonlyMap<string, ToolTarget>): object {
  const text = join(parts, "text");
  const reasoning = join(parts, "reasoning");
  const isCustom = ({ name }: WholeCall) => targets.get(name)?.isCustom ?? false;
  const calls = wholeCalls(parts).filter(
    (call) => call.isComplete || (!isCustom(call) && isUnrunnable(call.text)),
  );
  return {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call) => (isCustom(call) ? customCall(call) : functionCall(call))),
    }),
  };
}

function join(parts: readonly ReplyPart[], kind: "text" | "reasoning"): string {
  return parts.map((part) => (part.kind === kind ? part.text : "")).join("");
}

function wholeCalls(parts: readonly ReplyPart[]): WholeCall[] {
  const calls = new Map<number, WholeCall>();
  for (const part of parts) {
    if (part.kind === "call-start")
      calls.set(part.call, { id: part.id, name: part.name, text: "", isComplete: false });
    else if (part.kind === "call-arguments") calls.get(part.call)!.text += part.text;
    else if (part.kind === "call-end") calls.get(part.call)!.isComplete = true;
  }
  return [...calls.values()];
}

function functionCall({ id, name, text }: WholeCall): object {
  return { id, type: "function", function: { name, arguments: text } };
}

function customCall({ id, name, text }: WholeCall): object {
  const input = new CustomInput();
  return { id, type: "custom", custom: { name, input: input.push(text) + input.end() } };
}
