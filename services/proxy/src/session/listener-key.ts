/**
 * Owns listener keys: what the listener of one sandbox says first on every connection to the model API, so that the
 * connection is that session's and no other's. A key names the session and is authenticated under a key derived from
 * the service bearer: any replica recognises it after any restart. It stays outside the sandbox, and is no token.
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

export interface SessionName {
  readonly run: string;
  readonly trial: string;
}

/** Ids of runs and trials have no dot in them. */
const KEY = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/;

export class ListenerKeys {
  private readonly secret: Buffer;

  constructor(secret: string) {
    this.secret = Buffer.from(hkdfSync("sha256", secret, "", "mortise listener key v1", 32));
  }

  /** The same session always has the same key. */
  issue({ run, trial }: SessionName): string {
    return `${run}.${trial}.${this.code(run, trial)}`;
  }

  /** Whose key it is; undefined for anything else. */
  verify(key: string): SessionName | undefined {
    const [, run, trial, code] = KEY.exec(key) ?? [];
    if (run === undefined || trial === undefined || code === undefined) return undefined;
    const isOurs = timingSafeEqual(Buffer.from(code), Buffer.from(this.code(run, trial)));
    return isOurs ? { run, trial } : undefined;
  }

  private code(run: string, trial: string): string {
    return createHmac("sha256", this.secret).update(`${run}/${trial}`).digest("base64url");
  }
}
