/**
 * Owns how an error of one thing is told as that of another: of a flag that named it, of a process that ended. Its words
 * and its fix stay.
 */
import { ERROR_CATALOGUE, type ErrorCode, MortiseError } from "@mortise/contracts";

/** A refusal by the flag, with what to do. */
export function wrong(
  flag: string,
  message: string,
  fix: string,
  code: ErrorCode = "MORTISE_CONFIG_INVALID",
): MortiseError {
  return new MortiseError({ code, message: `${flag}: ${message}`, fix, detail: { field: flag } });
}

/** An error of the thing itself, told under the flag that named it. */
export function underFlag(flag: string, error: unknown): unknown {
  if (!(error instanceof MortiseError)) return error;
  const { code, fix, detail } = error;
  const message = `${flag}: ${withoutMeaning(code, error.message)}`;
  return new MortiseError({ code, message, fix, detail: { ...detail, field: flag }, cause: error });
}

/** Every error begins with the meaning of its code, and an error made of its words would begin so twice. */
export function withoutMeaning(code: ErrorCode, message: string): string {
  const { meaning } = ERROR_CATALOGUE[code];
  return message.startsWith(meaning) ? message.slice(meaning.length).trimStart() : message;
}
