/** Owns the expectation that a request is refused by name. */
import { MortiseError } from "@mortise/contracts";
import type { Dialect } from "../src/index.js";

/** The field a refusal names. Throws when the body is read, or fails in another way. */
export function refusedField(dialect: Dialect, body: unknown): unknown {
  try {
    dialect.read(body);
  } catch (error) {
    if (error instanceof MortiseError && error.code === "MORTISE_PROVIDER_BAD_REQUEST") {
      if (!error.message.includes(String(error.detail.field))) throw new Error("the message names no field");
      return error.detail.field;
    }
    throw error;
  }
  throw new Error("the request was read");
}
