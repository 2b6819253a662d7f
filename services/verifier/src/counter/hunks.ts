/**
 * Owns what a diff shows of files as they are afterwards: added lines and those around them, stretch by stretch. Does
 * not check the diff (packages/tasks does) and does not apply it.
 */

export interface ShownLine {
  /** Without the diff's mark. */
  readonly text: string;
  readonly isAdded: boolean;
  /** Index of the line in the diff; -1 of lines it does not show. */
  readonly at: number;
}

/** Lines that follow each other in the file as it is afterwards. */
export interface Stretch {
  readonly path: string;
  readonly lines: readonly ShownLine[];
  /** It is the whole file. */
  readonly isWhole: boolean;
}

interface Hunk {
  /** Of the file as it was, from 0. */
  readonly from: number;
  readonly to: number;
  readonly old: readonly string[];
  readonly lines: readonly ShownLine[];
  /** The file was not there, or was empty. */
  readonly isNew: boolean;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

/**
 * The files of a well-formed diff as they are afterwards: whole where the file as it was is known and the diff fits it
 * line by line, else as far as the diff shows them. Files that are deleted or binary have none.
 */
export function stretchesOf(diff: string, originals: ReadonlyMap<string, string> = new Map()): Stretch[] {
  return [...hunksByPath(diff.split("\n"))].flatMap(([path, hunks]) => {
    const original = originals.get(path);
    const whole = original === undefined ? undefined : afterwards(original.split("\n"), hunks);
    if (whole !== undefined) return [{ path, lines: whole, isWhole: true }];
    return hunks.map(({ lines, isNew }) => ({ path, lines, isWhole: isNew }));
  });
}

/** Undefined where a hunk does not stand where it says. */
function afterwards(original: readonly string[], hunks: readonly Hunk[]): ShownLine[] | undefined {
  const unshown = (text: string): ShownLine => ({ text, isAdded: false, at: -1 });
  const lines: ShownLine[] = [];
  let next = 0;
  for (const { from, to, old, lines: shown } of hunks) {
    if (from < next || old.some((text, at) => original[from + at] !== text)) return undefined;
    lines.push(...original.slice(next, from).map(unshown), ...shown);
    next = to;
  }
  return [...lines, ...original.slice(next).map(unshown)];
}

function hunksByPath(all: readonly string[]): Map<string, Hunk[]> {
  const found = new Map<string, Hunk[]>();
  let path: string | undefined;
  for (let at = 0; at < all.length; at++) {
    const line = all[at]!;
    if (line.startsWith("+++ ")) path = pathOf(line.slice(4));
    const header = HUNK.exec(line);
    if (header === null || path === undefined) continue;
    const hunk = hunkAt(all, at, header);
    found.set(path, [...(found.get(path) ?? []), hunk]);
    at += hunk.old.length + hunk.lines.filter(({ isAdded }) => isAdded).length;
  }
  return found;
}

function hunkAt(all: readonly string[], start: number, header: RegExpExecArray): Hunk {
  const lines: ShownLine[] = [];
  const old: string[] = [];
  const size = Number(header[2] ?? 1);
  // A hunk of no line stands behind the one it names.
  const from = Number(header[1]) - (size === 0 ? 0 : 1);
  let fresh = Number(header[3] ?? 1);
  for (let at = start + 1; (old.length < size || fresh > 0) && at < all.length; at++) {
    const line = all[at]!;
    if (line.startsWith("\\")) continue;
    const isAdded = line.startsWith("+");
    const text = line.slice(1);
    if (!isAdded) old.push(text);
    if (line.startsWith("-")) continue;
    fresh--;
    lines.push({ text, isAdded, at });
  }
  return { from, to: from + size, old, lines, isNew: size === 0 && Number(header[1]) === 0 };
}

/** Undefined for a deleted file, and for a name git had to quote: such tests are left as they are. */
function pathOf(text: string): string | undefined {
  const path = text.replace(/\t.*$/, "").replace(/\r$/, "");
  if (path === "/dev/null" || path.startsWith('"')) return undefined;
  return path.startsWith("b/") ? path.slice(2) : path;
}
