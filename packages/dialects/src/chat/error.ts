/** Owns how a failure looks to a client of OpenAI Chat Completions, before its stream began and within it. */
import type { MortiseError } from "@mortise/contracts";
import { errorObject, OPENAI_SHAPES, refusal } from "../openai-error.js";
import type { Refusal } from "../types.js";

export function refuseChat(error: MortiseError, requestId: string): Refusal {
  return refusal(error, requestId, OPENAI_SHAPES);
}

/** The last event of a stream that fails after it began. */
export function streamError(error: MortiseError): string {
  return JSON.stringify({ error: errorObject(error, OPENAI_SHAPES) });
}
