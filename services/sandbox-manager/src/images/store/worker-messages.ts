/**
 * Owns what the store and its unpacking threads say to each other, and how an error crosses between them.
 */
import { ERROR_CATALOGUE, type ErrorCode, MortiseError } from "@mortise/contracts";
import type { UnpackedLayer, UnpackOptions } from "../layer/unpack.js";

export type ToWorker =
  | { readonly kind: "unpack"; readonly options: Omit<UnpackOptions, "lower"> }
  | { readonly kind: "chunk"; readonly bytes: Uint8Array }
  | { readonly kind: "end" }
  | { readonly kind: "broken" }
  /** Give up what is being unpacked, close its files and say `stopped`. */
  | { readonly kind: "stop" }
  | { readonly kind: "lower"; readonly layers: readonly string[] };

export type FromWorker =
  /** One more chunk may be sent. */
  | { readonly kind: "consumed" }
  | { readonly kind: "lower-needed" }
  | { readonly kind: "stopped" }
  | { readonly kind: "unpacked"; readonly layer: UnpackedLayer }
  | { readonly kind: "failed"; readonly error: CarriedError };

export interface CarriedError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly fix: string;
}

export function carry(error: unknown): CarriedError {
  if (!(error instanceof MortiseError)) {
    const { code, fix } = new MortiseError({ code: "MORTISE_SANDBOX_IMAGE_STORE", message: "" });
    return { code, message: String((error as Error)?.stack ?? error), fix };
  }
  // The constructor puts the meaning in front, on the other side too.
  const { meaning } = ERROR_CATALOGUE[error.code];
  return { code: error.code, message: error.message.slice(meaning.length + 1), fix: error.fix };
}

export function arrived(error: CarriedError): MortiseError {
  return new MortiseError(error);
}
