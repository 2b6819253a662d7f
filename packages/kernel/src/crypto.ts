/**
 * Owns secrets made at run time. Does not store them: whoever asks writes the file, with mode 0600.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";

/** `bytes` random bytes as base64url: fits a subject token, an HTTP header and a file name. */
export function randomToken(bytes = 32): string {
  return randomBytes(bytes).toString("base64url");
}

/** Compares two secrets in time that does not depend on where they differ. */
export function equalSecrets(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}
