/**
 * Owns the one rule of the suite: a body is served, or refused with a MortiseError that names a field. Anything
 * else is a failure, which shows the body.
 */
import { MortiseError } from "@mortise/contracts";
import type { FuzzBody } from "./bodies.js";

/** Longer bodies are cut in the message: the name makes them again. */
const SHOWN_CHARACTERS = 4_000;

/** Whether `work` was done; false for a proper refusal. */
export function isServed(body: FuzzBody, work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (error instanceof MortiseError && namesField(error)) return false;
    throw failure(body, error);
  }
}

export function failure(body: FuzzBody, cause: unknown): Error {
  const { length } = body.text;
  const shown =
    length > SHOWN_CHARACTERS ? `${body.text.slice(0, SHOWN_CHARACTERS)}… (${length})` : body.text;
  const what = cause instanceof Error ? cause.stack : String(cause);
  return new Error(`${body.name} to ${body.dialect}: ${what}\n${shown}`, { cause });
}

function namesField({ code, detail, message }: MortiseError): boolean {
  const isAboutRequest =
    code === "MORTISE_PROVIDER_BAD_REQUEST" || code === "MORTISE_PROVIDER_CONTEXT_LENGTH";
  return isAboutRequest && typeof detail.field === "string" && detail.field !== "" && message !== "";
}
