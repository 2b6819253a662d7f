/**
 * Owns what a diff shows of files as they are afterwards: added lines and those around them, stretch by stretch. Does
 * not check the diff (packages/tasks does) and does not apply it.
 */

export interface ShownLine {
  /** Without the diff's mark. */
  readonly text: string;
  readonly isAdded: boolean;
  /** Index of the line in the diff. */
  readonly at: number;
}

/** Lines that follow each other in the file as it is afterwards. */
export interface Stretch {
  readonly path: string;
  readonly lines: readonly ShownLine[];
}

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

/** The stretches of a well-formed diff; files that are deleted or binary have none. */
export function stretchesOf(diff: string): Stretch[] {
  const stretches: Stretch[] = [];
  const all = diff.split("\n");
  let path: string | undefined;
  for (let at = 0; at < all.length; at++) {
    const line = all[at]!;
    if (line.startsWith("+++ ")) path = pathOf(line.slice(4));
    const header = HUNK.exec(line);
    if (header === null || path === undefined) continue;
    const lines: ShownLine[] = [];
    let [old, fresh] = [Number(header[1] ?? 1), Number(header[2] ?? 1)];
    while ((old > 0 || fresh > 0) && at + 1 < all.length) {
      const next = all[++at]!;
      if (next.startsWith("\\")) continue;
      const isAdded = next.startsWith("+");
      const isRemoved = next.startsWith("-");
      if (!isAdded) old--;
      if (isRemoved) continue;
      fresh--;
      lines.push({ text: next.slice(1), isAdded, at });
    }
    stretches.push({ path, lines });
  }
  return stretches;
}

/** Undefined for a deleted file, and for a name git had to quote: such tests are left as they are. */
function pathOf(text: string): string | undefined {
  const path = text.replace(/\t.*$/, "").replace(/\r$/, "");
  if (path === "/dev/null" || path.startsWith('"')) return undefined;
  return path.startsWith("b/") ? path.slice(2) : path;
}
