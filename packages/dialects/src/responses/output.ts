/**
 * Owns the way from the parts of a reply to the output items of a response: parts of one kind that follow
 * each other are one item, a call is one item, and the item before is closed when the next begins.
 *
 * A call that was cut off is closed only if nothing can run it, and then as `incomplete`: its harness answers
 * with an error and goes on. Otherwise it is left open and stands in no output, for clients run what is closed.
 */
import type { ReplyPart } from "@mortise/capture";
import { CallStarts, isUnrunnable } from "../call-starts.js";
import type { ToolTarget } from "../types.js";
import type { EventStream } from "./events.js";
import { type ItemKind, itemId, reasoningLocator } from "./item-ids.js";
import {
  CustomCallItem,
  FunctionCallItem,
  type ItemPlace,
  type ItemStatus,
  MessageItem,
  type OutputItem,
  ReasoningItem,
} from "./items.js";

interface OpenItem {
  readonly kind: ItemKind;
  readonly item: OutputItem;
  /** A call's argument text so far. */
  argumentText: string;
}

export class Output {
  /** Closed items, in order. */
  readonly items: object[] = [];
  private readonly turn: string;
  private readonly targets: ReadonlyMap<string, ToolTarget>;
  private readonly events: EventStream;
  private readonly starts = new CallStarts();
  private open: OpenItem | undefined;
  private begun = 0;

  constructor(turn: string, targets: ReadonlyMap<string, ToolTarget>, events: EventStream) {
    this.turn = turn;
    this.targets = targets;
    this.events = events;
  }

  add(part: ReplyPart): void {
    for (const released of this.starts.release(part)) this.released(released);
  }

  /** Closes what is open. `status` is that of an item that is not a call. */
  end(status: ItemStatus): void {
    const { open } = this;
    if (!open) return;
    const isCut = open.kind === "function_call" || open.kind === "custom_tool_call";
    if (!isCut) this.close(status);
    else if (open.kind === "function_call" && isUnrunnable(open.argumentText)) this.close("incomplete");
    this.open = undefined;
  }

  private released(part: ReplyPart): void {
    switch (part.kind) {
      case "text":
        if (part.text !== "") this.within("message").item.add(part.text);
        break;
      case "reasoning":
        if (part.text !== "") this.within("reasoning").item.add(part.text);
        break;
      case "call-start":
        this.begin(this.targets.get(part.name)?.isCustom ? "custom_tool_call" : "function_call", part);
        break;
      case "call-arguments":
        if (!this.open) break;
        this.open.argumentText += part.text;
        this.open.item.add(part.text);
        break;
      case "call-end":
        this.close("completed");
    }
  }

  private within(kind: "message" | "reasoning"): OpenItem {
    return this.open?.kind === kind ? this.open : this.begin(kind);
  }

  private begin(kind: ItemKind, call = { id: "", name: "" }): OpenItem {
    this.end("completed");
    const index = this.begun++;
    const place = { events: this.events, id: itemId(kind, this.turn, index), index };
    this.open = { kind, item: this.create(kind, place, call), argumentText: "" };
    this.open.item.open();
    return this.open;
  }

  private create(kind: ItemKind, place: ItemPlace, call: { id: string; name: string }): OutputItem {
    const target = this.targets.get(call.name) ?? { name: call.name, namespace: undefined };
    switch (kind) {
      case "message":
        return new MessageItem(place);
      case "reasoning":
        return new ReasoningItem(place, reasoningLocator(this.turn, place.index));
      case "function_call":
        return new FunctionCallItem(place, call.id, target);
      case "custom_tool_call":
        return new CustomCallItem(place, call.id, target);
    }
  }

  private close(status: ItemStatus): void {
    if (this.open) this.items.push(this.open.item.close(status));
    this.open = undefined;
  }
}
