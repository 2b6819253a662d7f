/**
 * Owns how an error crosses a gRPC call: a status that generic clients understand, and the stable code, fix and
 * detail in metadata, from which our client rebuilds the same MortiseError.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { Metadata, type ServiceError, type StatusObject, status } from "@grpc/grpc-js";
import { type Disposition, type ErrorCode, isErrorCode, MortiseError } from "@mortise/contracts";
import { fromUnknown } from "../errors.js";

const ERROR_KEY = "mortise-error-bin";

const STATUS_OF: Record<Disposition, status> = {
  retry: status.UNAVAILABLE,
  terminal: status.FAILED_PRECONDITION,
  cancelled: status.CANCELLED,
  budget: status.RESOURCE_EXHAUSTED,
};

/** What metadata carries of a MortiseError. The cause stays where it happened: it may hold secrets. */
interface Carried {
  readonly code: string;
  readonly message: string;
  readonly fix: string;
  readonly retryAfterMs?: number;
  readonly detail: Readonly<Record<string, unknown>>;
}

export function toStatus(error: unknown, method: DescMethod): StatusObject {
  const known = fromUnknown(error, "MORTISE_TRANSPORT_INTERNAL", `${method.parent.name}.${method.name}`);
  const carried: Carried = {
    code: known.code,
    message: known.message,
    fix: known.fix,
    detail: known.detail,
    ...(known.retryAfterMs === undefined ? {} : { retryAfterMs: known.retryAfterMs }),
  };
  const metadata = new Metadata();
  metadata.set(ERROR_KEY, Buffer.from(JSON.stringify(carried)));
  const code = known.code === "MORTISE_TRANSPORT_INTERNAL" ? status.INTERNAL : STATUS_OF[known.disposition];
  return { code, details: `${known.code} ${known.message}`, metadata };
}

/** The error a failed call rejects with. `where` names the method and the address. */
export function fromStatus(error: ServiceError, where: string): MortiseError {
  return carriedError(error) ?? transportError(error, where);
}

function carriedError(error: ServiceError): MortiseError | undefined {
  const [bytes] = error.metadata?.get(ERROR_KEY) ?? [];
  if (bytes === undefined) return undefined;
  const carried = JSON.parse(bytes.toString()) as Carried;
  if (!isErrorCode(carried.code)) return undefined;
  return Object.assign(
    new MortiseError({
      code: carried.code,
      message: "",
      fix: carried.fix,
      detail: carried.detail,
      cause: error,
      ...(carried.retryAfterMs === undefined ? {} : { retryAfterMs: carried.retryAfterMs }),
    }),
    // The catalogue's sentence is part of the message already.
    { message: carried.message },
  );
}

function transportError(error: ServiceError, where: string): MortiseError {
  return new MortiseError({
    code: transportCode(error.code),
    message: `${where}: ${status[error.code]} ${error.details}`,
    cause: error,
  });
}

function transportCode(code: status): ErrorCode {
  switch (code) {
    case status.UNAUTHENTICATED:
    case status.PERMISSION_DENIED:
      return "MORTISE_TRANSPORT_DENIED";
    case status.CANCELLED:
      return "MORTISE_TRANSPORT_CANCELLED";
    case status.UNAVAILABLE:
    case status.DEADLINE_EXCEEDED:
    case status.RESOURCE_EXHAUSTED:
      return "MORTISE_TRANSPORT_UNAVAILABLE";
    default:
      return "MORTISE_TRANSPORT_INTERNAL";
  }
}
