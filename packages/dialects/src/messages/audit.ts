/**
 * Owns the notes of one request and the texts shown where it holds something the policy cannot read. The texts
 * are part of the context that turns are trained under: changing one changes prompts.
 */
import type { Json } from "../fields.js";
import { PLACEHOLDERS } from "../placeholders.js";
import type { AuditNote } from "../types.js";

export class Audit {
  readonly notes: AuditNote[] = [];

  note(what: string, field: string): void {
    this.notes.push({ what, field });
  }
}

/** Text for a block that is not text, of a user message, a tool result or the system prompt. */
export function placeholder(block: Json, field: string, audit: Audit): string {
  switch (block.type) {
    case "image":
      audit.note("image-replaced", field);
      return PLACEHOLDERS.image;
    case "document":
      audit.note("document-replaced", field);
      return PLACEHOLDERS.file;
    case "tool_reference":
      audit.note("tool-reference-replaced", field);
      return `[tool available: ${typeof block.tool_name === "string" ? block.tool_name : "unnamed"}]`;
    default:
      audit.note("block-replaced", field);
      return "[content omitted]";
  }
}
