/** Owns paths as git quotes them: in double quotes, bytes above ASCII as three octal digits. */

const LETTERS: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  t: 9,
  n: 10,
  v: 11,
  f: 12,
  r: 13,
  '"': 34,
  "\\": 92,
};

/** The path without quotes; a path that is not quoted is returned as it is. */
export function unquotePath(text: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"/.exec(text);
  if (quoted === null) return text;
  const bytes: number[] = [];
  for (const [piece] of quoted[1]!.matchAll(/\\[0-7]{3}|\\.|[^\\]+/g)) {
    if (!piece.startsWith("\\")) bytes.push(...Buffer.from(piece));
    else if (piece.length === 4) bytes.push(Number.parseInt(piece.slice(1), 8));
    else bytes.push(LETTERS[piece[1]!] ?? piece.charCodeAt(1));
  }
  return Buffer.from(bytes).toString("utf8");
}
