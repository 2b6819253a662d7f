/**
 * Owns turning the items of a Responses request into messages. An assistant turn is several items here
 * (reasoning, text, calls) and one message in a conversation.
 *
 * Where one turn ends and the next begins without anything between them (a stream that was cut, and carried
 * on) is told by the turn that our own ids name; without those, behind text only calls belong to its turn.
 */
import type { Message, ToolCall } from "@mortise/capture";
import { customArguments } from "../custom-tool.js";
import { bad, isObject, type Json, object, optionalArray, string, textOf } from "../fields.js";
import { readContent } from "../openai-content.js";
import type { AuditNote } from "../types.js";
import { turnOfItem } from "./item-ids.js";
import { namespaceOf, type OfferedTools } from "./tools.js";

/** Calls that the harness runs though their tools have a type of their own; named after it. */
const BUILT_IN_CALLS = new Set(["local_shell", "shell", "apply_patch"]);

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readHistory(
  input: unknown,
  instructions: unknown,
  tools: OfferedTools,
  audit: AuditNote[],
): Message[] {
  const history = new History(tools, audit);
  history.system(readContent(instructions, "instructions", audit));
  if (typeof input === "string") history.item({ role: "user", content: input }, "input");
  else
    for (const [at, item] of optionalArray(input, "input").entries())
      history.item(object(item, `input[${at}]`), `input[${at}]`);
  return history.finished();
}

interface OpenTurn {
  turn: string | undefined;
  readonly texts: string[];
  readonly reasoning: string[];
  readonly toolCalls: ToolCall[];
  /** What its last item is. */
  last: "reasoning" | "text" | "call" | "other";
}

class History {
  private readonly messages: Message[] = [];
  private readonly tools: OfferedTools;
  private readonly audit: AuditNote[];
  private open: OpenTurn | undefined;

  constructor(tools: OfferedTools, audit: AuditNote[]) {
    this.tools = tools;
    this.audit = audit;
  }

  item(item: Json, field: string): void {
    // A message may leave its type out; nothing else may.
    const type = string(item.type ?? "message", `${field}.type`);
    switch (type) {
      case "message":
        this.message(item, field);
        break;
      case "reasoning":
        this.turnFor(item, "reasoning").reasoning.push(this.reasoningText(item, field));
        break;
      case "function_call":
        this.call(item, field, textOf(item.arguments, `${field}.arguments`));
        break;
      case "custom_tool_call":
        this.call(item, field, customArguments(textOf(item.input ?? "", `${field}.input`)));
        break;
      case "function_call_output":
      case "custom_tool_call_output":
        this.output(item, field);
        break;
      case "item_reference":
        throw bad(field, "refers to a stored item; nothing is stored, so send the item itself");
      default:
        this.otherItem(item, field, type);
    }
  }

  /** Everything the request opens with is one message; what comes later stays where it is. */
  system(text: string): void {
    if (text === "") return;
    const [first] = this.messages;
    const continuesFirst = this.messages.length === 1 && !this.open && first?.role === "system";
    if (continuesFirst) this.messages[0] = { role: "system", text: `${first.text}\n\n${text}` };
    else this.add({ role: "system", text });
  }

  finished(): Message[] {
    this.close();
    return this.messages;
  }

  private message(item: Json, field: string): void {
    const role = string(item.role, `${field}.role`);
    const text = readContent(item.content, `${field}.content`, this.audit);
    if (role === "assistant") {
      this.turnFor(item, "text").texts.push(text);
    } else if (role === "user") this.add({ role, text });
    else if (role === "system" || role === "developer") this.system(text);
    else throw bad(`${field}.role`, `is ${JSON.stringify(role)}, not user, assistant, system or developer`);
  }

  private call(item: Json, field: string, text: string): void {
    const id = string(item.call_id ?? item.id, `${field}.call_id`);
    const name = this.tools.policyName(string(item.name, `${field}.name`), namespaceOf(item));
    this.turnFor(item, "call").toolCalls.push({ id, name, arguments: text });
  }

  private output(item: Json, field: string): void {
    const toolCallId = string(item.call_id ?? item.id, `${field}.call_id`);
    this.add({ role: "tool", text: this.outputText(item.output, `${field}.output`), toolCallId });
  }

  /** Text, parts, or whatever object a tool returned. */
  private outputText(value: unknown, field: string): string {
    if (isObject(value) || typeof value === "number" || typeof value === "boolean")
      return textOf(value, field);
    return readContent(value, field, this.audit);
  }

  /** The reasoning as sampled where the client kept it, else its summary. */
  private reasoningText(item: Json, field: string): string {
    const content = readContent(item.content, `${field}.content`, this.audit);
    return content !== "" ? content : readContent(item.summary, `${field}.summary`, this.audit);
  }

  /** A call the harness runs though its tool has a type of its own, or something the policy has no use for. */
  private otherItem(item: Json, field: string, type: string): void {
    const [, name = "", output] = /^(.+)_call(_output)?$/.exec(type) ?? [];
    if (BUILT_IN_CALLS.has(name)) {
      if (output) this.output(item, field);
      else this.call({ ...item, name }, field, textOf(item.action ?? item.operation, `${field}.action`));
      return;
    }
    this.audit.push({ what: "item-dropped", field });
    if (this.open) this.open.last = "other";
  }

  /** The turn an item belongs to: the open one, or a new one. */
  private turnFor(item: Json, kind: OpenTurn["last"]): OpenTurn {
    const turn = turnOfItem(item);
    const { open } = this;
    if (open) {
      const isTold = turn !== undefined && open.turn !== undefined;
      const isNext = isTold ? turn !== open.turn : open.last === "text" && kind !== "call";
      if (isNext) this.close();
    }
    this.open ??= { turn, texts: [], reasoning: [], toolCalls: [], last: kind };
    this.open.turn ??= turn;
    this.open.last = kind;
    return this.open;
  }

  private add(message: Message): void {
    this.close();
    this.messages.push(message);
  }

  private close(): void {
    if (!this.open) return;
    const { texts, reasoning, toolCalls } = this.open;
    this.open = undefined;
    this.messages.push({ role: "assistant", text: texts.join(""), reasoning: reasoning.join(""), toolCalls });
  }
}
