/**
 * Owns the words for how one test of a log ended. Does not decide which of them count as passing for a list
 * of a record (see judge.ts).
 */

/**
 * `xfailed` is a failure the test's author expected. An unexpected pass (XPASS) has no status: what the
 * author called broken proves nothing, so such a test is missing.
 */
export const LOGGED_STATUSES = ["passed", "failed", "error", "skipped", "xfailed"] as const;
export type LoggedStatus = (typeof LOGGED_STATUSES)[number];

export function isPassing(status: LoggedStatus | undefined): boolean {
  return status === "passed" || status === "xfailed";
}

export function isFailing(status: LoggedStatus | undefined): boolean {
  return status === "failed" || status === "error";
}
