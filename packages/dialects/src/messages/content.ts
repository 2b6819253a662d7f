/**
 * Owns reading content that is shown to the policy: text, and what stands for everything else. Does not know
 * whose message the content is in (see history.ts).
 */
import { normaliseText } from "@mortise/capture";
import { isObject, type Json, object, optionalArray, string } from "../fields.js";
import { type Audit, placeholder } from "./audit.js";

/** A content block and the name of its place. */
export interface Block {
  readonly type: string;
  readonly block: Json;
  readonly field: string;
}

/** Blocks of a content; a string is one text block, absent content none. */
export function readBlocks(content: unknown, field: string): Block[] {
  if (typeof content === "string") return [{ type: "text", block: { text: content }, field }];
  return optionalArray(content, field).map((value, at) => {
    const place = `${field}[${at}]`;
    const block = object(value, place);
    return { type: string(block.type, `${place}.type`), block, field: place };
  });
}

/** Text of one block as the policy sees it. */
export function shownText({ type, block, field }: Block, audit: Audit): string {
  if (type === "text") return string(block.text, `${field}.text`);
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

/** Text of a document that has any: plain text, or blocks of its own. */
function documentText({ source }: Json, field: string, audit: Audit): string | undefined {
  if (!isObject(source)) return undefined;
  if (source.type === "text" && typeof source.data === "string") return source.data;
  if (source.type === "content") return nestedText(source.content, `${field}.source.content`, audit);
  return undefined;
}
