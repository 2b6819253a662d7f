/**
 * Owns the error vocabulary: one class, one catalogue (catalogue.ts). A code is stable once released; the docs page of
 * errors is generated from this table. Does not decide what to do about an error beyond its disposition.
 */

import { ERROR_CATALOGUE, type ErrorCode } from "./catalogue.js";
import type { Disposition } from "./row.js";

/** Which edge of the system was crossed when it went wrong. */
export type Boundary =
  | "config"
  | "operator"
  | "transport"
  | "provider"
  | "harness"
  | "sandbox"
  | "task"
  | "verifier"
  | "trainer"
  | "policy"
  | "capture";

export interface MortiseErrorInit {
  readonly code: ErrorCode;
  /** What was found, with the field, path or subject. */
  readonly message: string;
  /** Replaces the catalogue's fix when something more exact is known. */
  readonly fix?: string;
  readonly cause?: unknown;
  /** Wait at least this long before a retry, milliseconds. */
  readonly retryAfterMs?: number;
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** The only error that crosses a package boundary on purpose. */
export class MortiseError extends Error {
  readonly code: ErrorCode;
  readonly boundary: Boundary;
  readonly disposition: Disposition;
  readonly fix: string;
  readonly retryAfterMs: number | undefined;
  readonly detail: Readonly<Record<string, unknown>>;

  constructor(init: MortiseErrorInit) {
    const row = ERROR_CATALOGUE[init.code];
    super(`${row.meaning} ${init.message}`, init.cause === undefined ? undefined : { cause: init.cause });
    this.name = "MortiseError";
    this.code = init.code;
    this.boundary = boundaryOf(init.code);
    this.disposition = row.disposition;
    this.fix = init.fix ?? row.fix;
    this.retryAfterMs = init.retryAfterMs;
    this.detail = init.detail ?? {};
  }
}

/** The boundary is the second word of the code. */
export function boundaryOf(code: ErrorCode): Boundary {
  return code.split("_")[1]!.toLowerCase() as Boundary;
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(ERROR_CATALOGUE, value);
}
