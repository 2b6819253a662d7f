/**
 * Owns what a failure of the bus means: worth trying again with the same id, or final under a stable code.
 */
import { MortiseError } from "@mortise/contracts";
import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import { errors } from "@nats-io/nats-core";
import { fromUnknown } from "../errors.js";
import { retry } from "../retry.js";

/** Codes of JetStream API errors that the client library does not name. */
const STREAM_STORE_FAILED = 10077;
const SYSTEM_UNAVAILABLE = 10008;

const MAXIMUM_REACHED = /maximum (bytes|messages)/;

/** A stream at its size limit refused the message. */
export function isFull(error: unknown): boolean {
  return (
    error instanceof JetStreamApiError &&
    error.code === STREAM_STORE_FAILED &&
    MAXIMUM_REACHED.test(error.message)
  );
}

export function isWrongLastSequence(error: unknown): boolean {
  return (
    error instanceof JetStreamApiError &&
    (error.code === JetStreamApiCodes.StreamWrongLastSequence ||
      error.code === JetStreamApiCodes.StreamWrongLastSequenceUnknown)
  );
}

export function isNotFound(error: unknown): boolean {
  return (
    error instanceof JetStreamApiError &&
    (error.code === JetStreamApiCodes.NoMessageFound ||
      error.code === JetStreamApiCodes.ConsumerNotFound ||
      error.code === JetStreamApiCodes.StreamNotFound)
  );
}

/** Passing: an election, a restart, a lost connection. The request may have been carried out. */
export function isTransient(error: unknown): boolean {
  if (error instanceof errors.ClosedConnectionError || error instanceof errors.DrainingConnectionError)
    return false;
  if (error instanceof JetStreamApiError)
    return error.code === SYSTEM_UNAVAILABLE || (error.status === 503 && !isFull(error));
  if (error instanceof errors.RequestError) return !isDenied(error);
  return (
    error instanceof errors.TimeoutError ||
    error instanceof errors.NoRespondersError ||
    error instanceof errors.ConnectionError ||
    (error instanceof Error && error.name === "JetStreamNotEnabled")
  );
}

function isDenied(error: unknown): boolean {
  return (
    error instanceof errors.AuthorizationError ||
    error instanceof errors.PermissionViolationError ||
    (error instanceof Error && error.cause !== undefined && isDenied(error.cause))
  );
}

/** Longest outage a read rides out; a reader has its own deadline, unlike a fact that must be stored. */
const READ_PATIENCE_MS = 10_000;

/** Repeats a read through a passing outage; what finally fails is a MortiseError. */
export async function patiently<T>(where: string, read: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const isRetryable = (error: unknown) =>
    isTransient(error) && performance.now() - startedAt < READ_PATIENCE_MS;
  try {
    return await retry(read, { attempts: Infinity, baseMs: 50, maxMs: 1_000, isRetryable });
  } catch (error) {
    throw busError(error, where);
  }
}

/** The MortiseError of a failed bus operation; `where` names the subject, stream or bucket. */
export function busError(error: unknown, where: string): MortiseError {
  if (error instanceof MortiseError) return error;
  const cause = error;
  const reason = error instanceof Error ? error.message : String(error);
  if (isDenied(error))
    return new MortiseError({ code: "MORTISE_TRANSPORT_DENIED", message: `${where}: ${reason}`, cause });
  if (isFull(error))
    return new MortiseError({ code: "MORTISE_TRANSPORT_FULL", message: `${where}: ${reason}`, cause });
  if (isWrongLastSequence(error)) {
    return new MortiseError({
      code: "MORTISE_TRANSPORT_SEQUENCE_CONFLICT",
      message: `${where}: ${reason}`,
      cause,
    });
  }
  if (isNotFound(error))
    return new MortiseError({ code: "MORTISE_TRANSPORT_NOT_FOUND", message: `${where}: ${reason}`, cause });
  return fromUnknown(error, "MORTISE_TRANSPORT_UNAVAILABLE", where);
}
