/**
 * Owns the answer to a registry's challenge: a token from the server it names, or the login itself.
 * Tokens are kept until shortly before they end. Nothing secret reaches an error or a log.
 */
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";
import type { Credential } from "./credentials.js";
import { ask, type HttpOptions, persist, place } from "./http.js";
import { type Endpoint, isLoopback } from "./rewrite.js";

export interface Challenge {
  readonly scheme: string;
  readonly parameters: Readonly<Record<string, string>>;
}

const TokenAnswer = z.object({
  token: z.string().optional(),
  access_token: z.string().optional(),
  expires_in: z.number().optional(),
});
/** What the specification says of a token without a stated life. */
const DEFAULT_LIFE_S = 60;
const MARGIN_MS = 10_000;

/** `Bearer realm="…",service="…"`; undefined when the header is none of it. */
export function parseChallenge(header: string | null): Challenge | undefined {
  const match = /^\s*([A-Za-z]+)(?:\s+(.*))?$/s.exec(header ?? "");
  if (match === null) return undefined;
  const parameters: Record<string, string> = {};
  for (const [, key, quoted, bare] of (match[2] ?? "").matchAll(/([a-zA-Z_]+)=(?:"([^"]*)"|([^\s,]+))/g))
    parameters[key!.toLowerCase()] = quoted ?? bare!;
  return { scheme: match[1]!.toLowerCase(), parameters };
}

export class Authorization {
  readonly #endpoint: Endpoint;
  readonly #credential: () => Credential | undefined;
  readonly #options: HttpOptions;
  #header: { value: string; until: number } | undefined;

  constructor(endpoint: Endpoint, credential: () => Credential | undefined, options: HttpOptions) {
    this.#endpoint = endpoint;
    this.#credential = credential;
    this.#options = options;
  }

  /** Headers for the next request; empty before the first challenge. */
  headers(): Record<string, string> {
    const header = this.#header;
    return header === undefined || header.until <= this.#options.clock.now()
      ? {}
      : { authorization: header.value };
  }

  /** Rejects with MORTISE_SANDBOX_IMAGE_DENIED when there is no way to answer. */
  async answer(challenge: Challenge | undefined, signal: AbortSignal | undefined): Promise<void> {
    if (challenge?.scheme === "bearer") this.#header = await this.#token(challenge.parameters, signal);
    else if (challenge?.scheme === "basic") this.#header = { value: this.#basic(), until: Infinity };
    else throw this.denied("it asks for an unknown kind of login");
  }

  denied(why: string): MortiseError {
    const { host, repository } = this.#endpoint;
    return new MortiseError({
      code: "MORTISE_SANDBOX_IMAGE_DENIED",
      message: `${host}/${repository}: ${why}.`,
    });
  }

  #basic(): string {
    const credential = this.#credential();
    if (credential?.kind !== "basic") throw this.denied("it asks for a login and there is none");
    return basicHeader(credential);
  }

  async #token(
    { realm, service, scope }: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<{ value: string; until: number }> {
    const url = this.#realm(realm);
    const credential = this.#credential();
    const wanted = {
      ...(service === undefined ? {} : { service }),
      scope: scope ?? `repository:${this.#endpoint.repository}:pull`,
    };
    const request =
      credential?.kind === "identity"
        ? {
            method: "POST" as const,
            headers: { "content-type": "application/x-www-form-urlencoded" },
            body: new URLSearchParams({
              ...wanted,
              grant_type: "refresh_token",
              client_id: "mortise",
              refresh_token: credential.token,
            }).toString(),
          }
        : { headers: credential === undefined ? {} : { authorization: basicHeader(credential) } };
    if (credential?.kind !== "identity")
      for (const [key, value] of Object.entries(wanted)) url.searchParams.set(key, value);
    const answered = this.#options.clock.now();
    const response = await persist(
      () => ask({ url, signal, ...request }, this.#options),
      this.#options,
      signal,
    );
    const { data } = TokenAnswer.safeParse(
      response.ok ? await response.json().catch(() => undefined) : undefined,
    );
    const token = data?.token ?? data?.access_token;
    if (token === undefined) throw this.denied(`${place(url)} gives no token (status ${response.status})`);
    const lifeMs = Math.max((data?.expires_in ?? DEFAULT_LIFE_S) * 1000 - MARGIN_MS, 1000);
    return { value: `Bearer ${token}`, until: answered + lifeMs };
  }

  /** A registry reached over TLS must not send our login over plain HTTP. */
  #realm(realm: string | undefined): URL {
    const url = URL.parse(realm ?? "");
    const isPlain = url?.protocol === "http:";
    if (url === null || (!isPlain && url.protocol !== "https:"))
      throw this.denied("its token server is no URL");
    if (isPlain && this.#endpoint.base.protocol === "https:" && !isLoopback(url.host))
      throw this.denied("its token server is not reached over TLS");
    return url;
  }
}

function basicHeader({ user, password }: Extract<Credential, { kind: "basic" }>): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}
