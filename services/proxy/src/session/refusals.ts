/**
 * Owns what a session says when it refuses a call or cuts a turn. Each code makes a harness do the right thing: come
 * again, or stop. Does not decide when.
 */
import { MortiseError } from "@mortise/contracts";

/** What a harness is told once the session's token is dead. */
export function sessionEnded(): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_UNAUTHORIZED", message: "The session has ended." });
}

export function stopping(): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "The proxy is stopping." });
}

export function tooManyAtOnce(limit: number): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_MAILBOX_FULL",
    message: `The session has ${limit} turns at the engine.`,
    fix: "Wait for one of them.",
  });
}

export function callerLeft(): MortiseError {
  return new MortiseError({ code: "MORTISE_TRANSPORT_CANCELLED", message: "The client left." });
}

export function adopted(): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_CANCELLED",
    message: "The harness went on from the part of the reply it had.",
  });
}

export function notStoredYet(ms: number): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_UNAVAILABLE",
    message: `The reply this call goes on from could not be stored within ${ms} ms.`,
  });
}
