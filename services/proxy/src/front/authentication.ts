/**
 * Owns telling which session a request belongs to: by the token in its base URL, its bearer or its API key; and
 * whether it came the way that session's calls must come. Tokens are the only credential; what they carry is
 * session/token.ts. Everything else is refused alike, without a word about why, and no token is ever written anywhere.
 *
 * A1  A token is good through its own sandbox's listener alone (DESIGN §7). On a connection that no listener vouches
 *     for, only tokens of sessions that were opened for direct use are.
 */
import { MortiseError } from "@mortise/contracts";
import type { SessionName } from "../session/listener-key.js";
import type { SessionTerms, SessionTokens } from "../session/token.js";

/** @throws MortiseError MORTISE_PROVIDER_UNAUTHORIZED */
export function authenticate(
  tokens: SessionTokens,
  from: { token: string | undefined; headers: Readonly<Record<string, string | undefined>> },
): SessionTerms {
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(from.headers.authorization ?? "")?.[1];
  // Harnesses insist on a key even where the path says everything, so a dummy beside a good token is no fault.
  for (const token of [from.token, bearer, from.headers["x-api-key"]]) {
    const terms = token === undefined ? undefined : tokens.verify(token);
    if (terms) return terms;
  }
  throw new MortiseError({ code: "MORTISE_PROVIDER_UNAUTHORIZED", message: "Incorrect API key provided." });
}

/**
 * A1.
 * @param listener whose connection it came on; "unknown" for a listener key that is none of ours, undefined for none
 * @throws MortiseError MORTISE_PROVIDER_LISTENER
 */
export function requireOwnListener(
  { run, trial, isThroughListener = false }: SessionTerms,
  listener: SessionName | "unknown" | undefined,
): void {
  if (listener === undefined && !isThroughListener) return;
  if (typeof listener === "object" && listener.run === run && listener.trial === trial) return;
  throw new MortiseError({
    code: "MORTISE_PROVIDER_LISTENER",
    message: "This API key is not valid at this endpoint.",
  });
}
