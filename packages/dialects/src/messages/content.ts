/**
 * Owns reading content that is shown to the policy: text, and what stands for everything else. Does not know
 * whose message the content is in (see history.ts).
 */
import { normaliseText } from "@mortise/capture";
import { bad, isObject, type Json, readArray, readObject } from "./fields.js";
import { type Audit, placeholder } from "./placeholders.js";

/** A content block with the name of its place. */
export interface Block {
  readonly type: string;
  readonly block: Json;
  readonly field: string;
}

/** Blocks of a content; a string is one text block, absent content none. */
export function readBlocks(content: unknown, field: string): Block[] {
  if (typeof content === "string") return [{ type: "text", block: { type: "text", text: content }, field }];
  return readArray(content, field).map((value, at) => {
    const place = `${field}[${at}]`;
    const block = readObject(value, place);
    if (typeof block.type !== "string") throw bad(`${place}.type`, "is not a string");
    return { type: block.type, block, field: place };
  });
}

/** Text of one block as the policy sees it. */
export function shownText({ type, block, field }: Block, audit: Audit): string {
  if (type === "text") return readText(block, field);
  if (type === "document") return documentText(block, field, audit) ?? placeholder(block, field, audit);
  if (type === "search_result") return nestedText(block.content, `${field}.content`, audit);
  return placeholder(block, field, audit);
}

/** Like `shownText`, without volatile headers, which are noted. */
export function promptText(one: Block, audit: Audit): string {
  const text = shownText(one, audit);
  const kept = normaliseText([{ text }]);
  if (kept !== text) audit.note("volatile-header-dropped", one.field);
  return kept;
}

/** Concatenated text of a string or a list of blocks. */
export function nestedText(content: unknown, field: string, audit: Audit): string {
  return readBlocks(content, field)
    .map((one) => shownText(one, audit))
    .join("");
}

export function readText(block: Json, field: string): string {
  if (typeof block.text === "string") return block.text;
  throw bad(`${field}.text`, "is not a string");
}

/** Text of a document that has any: plain text, or blocks of its own. */
function documentText({ source }: Json, field: string, audit: Audit): string | undefined {
  if (!isObject(source)) return undefined;
  if (source.type === "text" && typeof source.data === "string") return source.data;
  if (source.type === "content") return nestedText(source.content, `${field}.source.content`, audit);
  return undefined;
}
