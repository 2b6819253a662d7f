/** Owns saying where two lists of ids part. Ids only: what they mean never reaches a message. */

/** Ids shown around the difference. */
const SHOWN = 4;

/** In words, where `found` first differs from `expected`; undefined when they are equal. */
export function firstDifference(expected: ArrayLike<number>, found: ArrayLike<number>): string | undefined {
  const shared = Math.min(expected.length, found.length);
  let at = 0;
  while (at < shared && expected[at] === found[at]) at++;
  if (at === shared && expected.length === found.length) return undefined;
  return `at position ${at}: expected ${window(expected, at)}, found ${window(found, at)}`;
}

function window(ids: ArrayLike<number>, at: number): string {
  if (at >= ids.length) return `the end (${ids.length} ids)`;
  const shown = Array.from({ length: Math.min(SHOWN, ids.length - at) }, (_, offset) => ids[at + offset]);
  return `${shown.join(" ")}${at + SHOWN < ids.length ? " …" : ""} (of ${ids.length})`;
}
