/**
 * Owns the names of output items: unique in a session, and telling the turn they belong to. A client that
 * sends items back with their ids, or reasoning with its `encrypted_content`, thereby says which items were
 * one turn; where it sends neither, order alone has to tell (history.ts).
 */
import type { Json } from "../fields.js";

export type ItemKind = "message" | "reasoning" | "function_call" | "custom_tool_call";

const PREFIXES: Readonly<Record<ItemKind, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  custom_tool_call: "ctc",
};

const OUR_ITEM = /^(?:msg|rs|fc|ctc)_([A-Za-z0-9_-]+)_\d+$/;
const OUR_LOCATOR = /^mortise:([A-Za-z0-9_-]+):\d+$/;

/** @param at the item's place in the reply's output */
export function itemId(kind: ItemKind, turn: string, at: number): string {
  return `${PREFIXES[kind]}_${turn}_${at}`;
}

/** What stands as `encrypted_content`: some clients drop reasoning without it. Nothing is hidden in it. */
export function reasoningLocator(turn: string, at: number): string {
  return `mortise:${turn}:${at}`;
}

/** The turn an item of the history was sampled in; undefined when it does not say. */
export function turnOfItem(item: Json): string | undefined {
  const byId = typeof item.id === "string" ? OUR_ITEM.exec(item.id) : null;
  if (byId) return byId[1];
  const content = item.encrypted_content;
  return (typeof content === "string" ? OUR_LOCATOR.exec(content) : null)?.[1];
}
