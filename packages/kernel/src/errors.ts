/**
 * Owns turning whatever was thrown into a MortiseError, once, at the edge it crossed.
 * Does not own the vocabulary (packages/contracts) nor what is done about an error.
 */
import { type Disposition, type ErrorCode, MortiseError } from "@mortise/contracts";

/** A MortiseError as it is; anything else wrapped under `code`, with the original as cause. */
export function fromUnknown(error: unknown, code: ErrorCode, context?: string): MortiseError {
  if (error instanceof MortiseError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new MortiseError({
    code,
    message: context === undefined ? reason : `${context}: ${reason}`,
    cause: error,
  });
}

/** Runs `fn`; whatever escapes it is attributed to `code`, whose second word names the boundary. */
export async function at<T>(code: ErrorCode, context: string, fn: () => T | Promise<T>): Promise<T> {
  try {
    return await fn();
  } catch (error) {
    throw fromUnknown(error, code, context);
  }
}

/** The disposition of an error; something nobody attributed is terminal, so that it is seen. */
export function dispositionOf(error: unknown): Disposition {
  return error instanceof MortiseError ? error.disposition : "terminal";
}
