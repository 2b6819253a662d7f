/**
 * Owns the content of messages in OpenAI's two protocols: a string, null, or parts, of which text is kept and
 * the rest stands as a placeholder. Does not know roles or messages.
 */
import { normaliseText } from "@mortise/capture";
import { array, bad, object, string } from "./fields.js";
import { type Omitted, PLACEHOLDERS } from "./placeholders.js";
import type { AuditNote } from "./types.js";

/** Parts of text, by the field that holds it. */
const TEXT_FIELDS: Readonly<Record<string, string>> = {
  text: "text",
  input_text: "text",
  output_text: "text",
  summary_text: "text",
  reasoning_text: "text",
  refusal: "refusal",
};

const OMITTED: Readonly<Record<string, Omitted>> = {
  image_url: "image",
  input_image: "image",
  computer_screenshot: "image",
  input_audio: "audio",
  file: "file",
  input_file: "file",
};

/**
 * Normalised text of a message's content (packages/capture). Parts of unknown types are dropped with a note:
 * replayed history must not be refused for what a newer client put into it.
 * @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field
 */
export function readContent(value: unknown, field: string, audit: AuditNote[]): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return normaliseText(value);
  if (!Array.isArray(value)) throw bad(field, "is neither text nor an array of parts");
  const parts = array(value, field).map((part, at) => readPart(part, `${field}[${at}]`, audit));
  return normaliseText(parts.map((text) => ({ text })));
}

function readPart(value: unknown, field: string, audit: AuditNote[]): string {
  if (typeof value === "string") return value;
  const part = object(value, field);
  const type = string(part.type, `${field}.type`);
  const textField = Object.hasOwn(TEXT_FIELDS, type) ? TEXT_FIELDS[type] : undefined;
  if (textField !== undefined) return string(part[textField], `${field}.${textField}`);
  const omitted = Object.hasOwn(OMITTED, type) ? OMITTED[type] : undefined;
  audit.push({ what: omitted === undefined ? "part-dropped" : `${omitted}-replaced`, field });
  return omitted === undefined ? "" : PLACEHOLDERS[omitted];
}
