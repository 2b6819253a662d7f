/**
 * Owns the digest of a protocol: SHA-256 (lower-case hex) over its JSON with the keys of every object in code-unit order,
 * so that neither the order of a file's lines nor what was left to a default changes it. The name is in it.
 */
import { createHash } from "node:crypto";

/** @param protocol with its defaults filled in */
export function protocolDigest(protocol: object): string {
  return createHash("sha256").update(canonicalJson(protocol)).digest("hex");
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
