/**
 * Owns session tokens: the only credential inside a sandbox. A token is the session's terms, encrypted and
 * authenticated under a key derived from the service bearer, so any replica recognises it after any restart
 * without asking anyone, and the agent can neither read nor alter what it carries.
 *
 * The nonce is derived from the terms: the same terms give the same token (opening is idempotent), and no
 * nonce is ever used for two different plaintexts. Verification is the cipher's own, in constant time; tokens that
 * passed are known by their digest, so that time tells nothing about them and no token is kept.
 */
import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync } from "node:crypto";
import { z } from "zod";

/** What a session was opened with. */
export const SessionTerms = z.strictObject({
  run: z.string(),
  trial: z.string(),
  isEvaluation: z.boolean(),
  rngKey: z.string(),
  temperature: z.number().positive().optional(),
  maxTokensPerTurn: z.int().min(1).optional(),
  /** Good only on connections of its own listener (session/listener-key.ts). */
  isThroughListener: z.boolean().optional(),
  budget: z.strictObject({
    /** 0 means unlimited in each. */
    turns: z.number().min(0),
    promptTokens: z.number().min(0),
    responseTokens: z.number().min(0),
    wallClockMs: z.number().min(0),
    turnsWithoutCall: z.number().min(0),
  }),
});
export type SessionTerms = z.infer<typeof SessionTerms>;

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Sessions that call by turns; the oldest is verified anew. */
const MAX_VERIFIED = 4096;

export class SessionTokens {
  private readonly encryptionKey: Buffer;
  private readonly nonceKey: Buffer;
  private readonly verified = new Map<string, SessionTerms>();

  constructor(secret: string) {
    this.encryptionKey = derive(secret, "session token encryption");
    this.nonceKey = derive(secret, "session token nonce");
  }

  issue(terms: SessionTerms): string {
    const plain = JSON.stringify(SessionTerms.parse(terms));
    const nonce = createHmac("sha256", this.nonceKey).update(plain).digest().subarray(0, NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.encryptionKey, nonce);
    const body = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
    return Buffer.concat([nonce, body, cipher.getAuthTag()]).toString("base64url");
  }

  /** The terms of a token we issued; undefined for anything else, without saying why. */
  verify(token: string): SessionTerms | undefined {
    const digest = hash("sha256", token, "base64");
    const known = this.verified.get(digest) ?? this.decrypt(token);
    if (known) this.verified.set(digest, known);
    if (this.verified.size > MAX_VERIFIED) this.verified.delete(this.verified.keys().next().value!);
    return known;
  }

  private decrypt(token: string): SessionTerms | undefined {
    const bytes = Buffer.from(token, "base64url");
    // Decoding passes over characters that are none of its own: only the token as it was issued is one.
    if (bytes.toString("base64url") !== token) return undefined;
    if (bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined;
    const decipher = createDecipheriv(CIPHER, this.encryptionKey, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const body = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return SessionTerms.parse(JSON.parse(Buffer.concat([body, decipher.final()]).toString("utf8")));
    } catch {
      return undefined;
    }
  }
}

function derive(secret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", `mortise ${purpose} v1`, 32));
}
