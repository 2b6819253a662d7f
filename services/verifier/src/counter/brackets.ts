/** Owns what stands in brackets and what does not, in code whose strings are masked. */

const OPENING = "([{";
const CLOSING = ")]}";

/** The code, blank wherever it stands in brackets. */
export function onlyTop(code: string): string {
  let depth = 0;
  return [...code]
    .map((char) => {
      if (CLOSING.includes(char)) depth--;
      const shown = depth > 0 && !OPENING.includes(char) ? " " : char;
      if (OPENING.includes(char)) depth++;
      return shown;
    })
    .join("");
}

export interface Part {
  readonly from: number;
  readonly to: number;
}

/** What the commas outside brackets divide. */
export function partsAtTop(code: string, start: number, end = code.length): Part[] {
  const top = onlyTop(code.slice(start, end));
  const parts: Part[] = [];
  let from = start;
  for (let at = 0; at <= top.length; at++)
    if (at === top.length || top[at] === ",") {
      parts.push({ from, to: start + at });
      from = start + at + 1;
    }
  return parts;
}

/** Index of the bracket that closes the one at `open`; -1 when none does. */
export function closingOf(code: string, open: number): number {
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    if (OPENING.includes(code[at]!)) depth++;
    else if (CLOSING.includes(code[at]!) && --depth === 0) return at;
  }
  return -1;
}
