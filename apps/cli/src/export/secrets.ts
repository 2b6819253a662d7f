/**
 * Owns recognising secrets in text that is about to leave the machine. Captured ids are exported exactly or not at all:
 * whoever finds one here leaves the whole trial out and says so.
 */

/** A session token is encrypted terms in base64url: one unbroken run, longer than any digest. */
const SESSION_TOKEN = /[A-Za-z0-9_-]{256,}/g;

const KINDS: readonly (readonly [kind: string, pattern: RegExp])[] = [
  ["a private key", /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/=\s]{64}/],
  ["a key of a model provider", /\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}/],
  ["a token of a code host", /\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{40,}|glpat-[\w-]{20})/],
  ["an access key of a cloud", /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/],
  ["a password in an address", /\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@]+:[^\s:/@]{4,}@[\w.-]+/],
];

/** What was found, for people and without the secret itself; undefined when nothing was. */
export function secretIn(text: string): string | undefined {
  const known = KINDS.find(([, pattern]) => pattern.test(text));
  if (known) return known[0];
  return (text.match(SESSION_TOKEN) ?? []).some(isMixed) ? "a session token" : undefined;
}

/** A line of dashes, a long number or a digest is none. */
function isMixed(run: string): boolean {
  return /[a-z]/.test(run) && /[A-Z]/.test(run) && /\d/.test(run) && new Set(run).size > 32;
}
