/**
 * Owns the Hermes call syntax: a JSON object `{"name": …, "arguments": {…}}` between the marks. Names are not
 * checked against the offered tools: the harness answers an unknown tool, and the policy learns from the answer.
 */
import { JsonCallReader } from "./json-call.js";
import { CALL_CLOSE, CALL_OPEN, type ToolFormat } from "./types.js";

export const hermes: ToolFormat = {
  name: "hermes",
  open: [CALL_OPEN],
  close: CALL_CLOSE,
  bareStart: undefined,
  reader: () => new JsonCallReader(),
};
