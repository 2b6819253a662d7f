/**
 * Owns the JSON call syntax of Llama 3.1 and later: the reply is one JSON object `{"name": …, "parameters":
 * {…}}`, bare or behind `<|python_tag|>`. Its templates take one call a turn, so what follows the object is
 * text. A reply that begins with a brace and spells no call is text.
 */
import { JsonCallReader } from "./json-call.js";
import type { ToolFormat } from "./types.js";

export const llamaJson: ToolFormat = {
  name: "llama-json",
  open: ["<|python_tag|>"],
  close: undefined,
  bareStart: "{",
  reader: () => new JsonCallReader(),
};
