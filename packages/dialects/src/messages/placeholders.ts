/**
 * Owns what the policy is shown where a request holds something it cannot read: a short neutral text in the
 * same place, and a note with the turn. The texts are part of the context that turns are trained under.
 */
import type { AuditNote } from "../types.js";
import type { Json } from "./fields.js";

/** Collects the notes of one request. */
export class Audit {
  readonly notes: AuditNote[] = [];

  note(what: string, field: string): void {
    this.notes.push({ what, field });
  }
}

/** Text for a block of a user message, a tool result or the system prompt that is not text. */
export function placeholder(block: Json, field: string, audit: Audit): string {
  switch (block.type) {
    case "image":
      audit.note("image-replaced", field);
      return "[an image that cannot be shown]";
    case "document":
      audit.note("document-replaced", field);
      return "[a document that cannot be shown]";
    case "tool_reference":
      audit.note("tool-reference-replaced", field);
      return `[tool ${typeof block.tool_name === "string" ? block.tool_name : "unknown"} can be called now]`;
    default:
      audit.note("block-replaced", field);
      return "[content that cannot be shown]";
  }
}
