/**
 * Owns the answer of `POST …/messages/count_tokens`. Its request is read as any other, without `max_tokens`;
 * the count is that of the ids the policy would be given, so whoever renders also counts.
 */

/** Body of the answer. */
export function tokenCountBody(promptTokens: number): string {
  return JSON.stringify({ input_tokens: promptTokens });
}
