/**
 * Owns turning whatever was thrown into a MortiseError, once, at the edge it crossed.
 * Does not own the vocabulary (packages/contracts) nor what is done about an error.
 */
import { type Boundary, type Disposition, type ErrorCode, MortiseError } from "@mortise/contracts";

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

/** Errors at these boundaries come from what the operator gave; at others something of ours failed. */
const OPERATORS_BOUNDARIES: ReadonlySet<Boundary> = new Set([
  "config",
  "operator",
  "task",
  "policy",
  "harness",
]);
/** Codes of other boundaries that trying again does not mend. */
const OPERATORS_CODES: ReadonlySet<ErrorCode> = new Set([
  "MORTISE_SANDBOX_BACKEND",
  "MORTISE_TRAINER_CHECKPOINT",
  "MORTISE_TRAINER_DEMONSTRATIONS",
  "MORTISE_TRANSPORT_DENIED",
  "MORTISE_TRANSPORT_TOPOLOGY",
]);
const DISK_FULL = new Set(["ENOSPC", "EDQUOT"]);
const UNUSABLE_PATH = new Set([
  "EACCES",
  "EEXIST",
  "EISDIR",
  "ELOOP",
  "ENAMETOOLONG",
  "ENOENT",
  "ENOTDIR",
  "EPERM",
  "EROFS",
]);

/**
 * The error as the operator's, when it is the operator who can mend it: a wrong value, a missing file, a full
 * disk, refused credentials. Undefined for everything else. Decides exit codes, nothing more.
 */
export function operatorsError(error: unknown): MortiseError | undefined {
  if (error instanceof MortiseError) {
    const isOperators = OPERATORS_BOUNDARIES.has(error.boundary) || OPERATORS_CODES.has(error.code);
    return isOperators ? error : undefined;
  }
  // A refusal of the file system that nobody attributed: its own message names the call and the path.
  if (!(error instanceof Error)) return undefined;
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === undefined) return undefined;
  const detail = path === undefined ? {} : { path };
  const { message } = error;
  // What fails while it writes to a file that is open names no path.
  if (DISK_FULL.has(code))
    return new MortiseError({ code: "MORTISE_OPERATOR_DISK_FULL", message, cause: error, detail });
  if (path === undefined || !UNUSABLE_PATH.has(code)) return undefined;
  return new MortiseError({ code: "MORTISE_OPERATOR_FILES", message, cause: error, detail });
}

/** The disposition of an error; something nobody attributed is terminal, so that it is seen. */
export function dispositionOf(error: unknown): Disposition {
  return error instanceof MortiseError ? error.disposition : "terminal";
}
