/**
 * Owns telling which session a request belongs to: by the token in its base URL, its bearer or its API key.
 * Tokens are the only credential; what they carry is session/token.ts. Everything else is refused alike,
 * without a word about why, and no token is ever written anywhere.
 */
import { MortiseError } from "@mortise/contracts";
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
