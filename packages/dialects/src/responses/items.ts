/**
 * Owns the output items of a response, one class a kind: the events by which each is opened, grows and is
 * closed, and the finished object. Does not decide where one item ends (output.ts).
 */
import { CustomInput } from "../custom-input.js";
import type { ToolTarget } from "../types.js";
import type { EventStream } from "./events.js";

/** A tool as the client knows it. */
export type CalledTool = Omit<ToolTarget, "isCustom">;

export type ItemStatus = "in_progress" | "completed" | "incomplete";

export interface OutputItem {
  open(): void;
  add(text: string): void;
  /** Closes the item and gives it as it stands in the output. */
  close(status: ItemStatus): object;
}

/** Where an item's events say they belong. */
export interface ItemPlace {
  readonly events: EventStream;
  readonly id: string;
  readonly index: number;
}

abstract class Item implements OutputItem {
  protected text = "";
  private readonly place: ItemPlace;

  constructor(place: ItemPlace) {
    this.place = place;
  }

  abstract add(text: string): void;
  protected abstract fields(status: ItemStatus): object;

  open(): void {
    this.emit("response.output_item.added", {
      output_index: this.place.index,
      item: this.whole("in_progress"),
    });
  }

  close(status: ItemStatus): object {
    const item = this.whole(status);
    this.emit("response.output_item.done", { output_index: this.place.index, item });
    return item;
  }

  /** An event of what is inside the item. */
  protected emitInner(type: string, fields: object): void {
    const { id, index } = this.place;
    this.emit(type, { item_id: id, output_index: index, ...fields });
  }

  private emit(type: string, fields: object): void {
    this.place.events.emit(type, fields);
  }

  private whole(status: ItemStatus): object {
    return { id: this.place.id, ...this.fields(status) };
  }
}

export class MessageItem extends Item {
  override open(): void {
    super.open();
    this.emitInner("response.content_part.added", { content_index: 0, part: this.part() });
  }

  add(delta: string): void {
    this.text += delta;
    this.emitInner("response.output_text.delta", { content_index: 0, delta, logprobs: [] });
  }

  override close(status: ItemStatus): object {
    this.emitInner("response.output_text.done", { content_index: 0, text: this.text, logprobs: [] });
    this.emitInner("response.content_part.done", { content_index: 0, part: this.part() });
    return super.close(status);
  }

  protected fields(status: ItemStatus): object {
    const content = status === "in_progress" ? [] : [this.part()];
    return { type: "message", status, role: "assistant", content };
  }

  private part(): object {
    return { type: "output_text", text: this.text, annotations: [], logprobs: [] };
  }
}

/** The reasoning is its summary, whole: it is the form in which clients keep it and send it back. */
export class ReasoningItem extends Item {
  private readonly locator: string;

  constructor(place: ItemPlace, locator: string) {
    super(place);
    this.locator = locator;
  }

  override open(): void {
    super.open();
    this.emitInner("response.reasoning_summary_part.added", { summary_index: 0, part: this.part() });
  }

  add(delta: string): void {
    this.text += delta;
    this.emitInner("response.reasoning_summary_text.delta", { summary_index: 0, delta });
  }

  override close(status: ItemStatus): object {
    this.emitInner("response.reasoning_summary_text.done", { summary_index: 0, text: this.text });
    this.emitInner("response.reasoning_summary_part.done", { summary_index: 0, part: this.part() });
    return super.close(status);
  }

  protected fields(status: ItemStatus): object {
    const summary = status === "in_progress" ? [] : [this.part()];
    return { type: "reasoning", summary, encrypted_content: this.locator };
  }

  private part(): object {
    return { type: "summary_text", text: this.text };
  }
}

abstract class CallItem extends Item {
  private readonly callId: string;
  private readonly target: CalledTool;

  constructor(place: ItemPlace, callId: string, target: CalledTool) {
    super(place);
    this.callId = callId;
    this.target = target;
  }

  protected callFields(status: ItemStatus): object {
    const { name, namespace } = this.target;
    return { status, call_id: this.callId, name, ...(namespace !== undefined && { namespace }) };
  }
}

/** A call of a function; its arguments are the text as it was sampled. */
export class FunctionCallItem extends CallItem {
  add(delta: string): void {
    this.text += delta;
    this.emitInner("response.function_call_arguments.delta", { delta });
  }

  override close(status: ItemStatus): object {
    this.emitInner("response.function_call_arguments.done", { arguments: this.text });
    return super.close(status);
  }

  protected fields(status: ItemStatus): object {
    return { type: "function_call", ...this.callFields(status), arguments: this.text };
  }
}

/** A call of a custom tool, which takes raw text. */
export class CustomCallItem extends CallItem {
  private readonly input = new CustomInput();

  add(argumentText: string): void {
    this.grow(this.input.push(argumentText));
  }

  override close(status: ItemStatus): object {
    this.grow(this.input.end());
    this.emitInner("response.custom_tool_call_input.done", { input: this.text });
    return super.close(status);
  }

  protected fields(status: ItemStatus): object {
    return { type: "custom_tool_call", ...this.callFields(status), input: this.text };
  }

  private grow(delta: string): void {
    if (delta === "") return;
    this.text += delta;
    this.emitInner("response.custom_tool_call_input.delta", { delta });
  }
}
