/**
 * Owns looking a path up in layers stacked as an overlay stacks them, without mounting them. Links are not
 * followed: a path means the entries of these very names.
 */
import { lstatSync, type Stats } from "node:fs";
import { readXattrs } from "./linux.js";

/** Name of the attribute that hides everything lower layers have below a directory. */
export const OPAQUE_XATTR = "trusted.overlay.opaque";

export interface LowerEntry {
  /** Byte string: the entry in the layer that shows it. */
  readonly path: string;
  readonly stat: Stats;
}

/** @param layers roots, topmost first; @returns undefined when nothing is visible there */
export function lookUp(layers: readonly string[], parts: readonly string[]): LowerEntry | undefined {
  let visible = layers.map((layer) => Buffer.from(layer).toString("latin1"));
  let found: LowerEntry | undefined;
  for (const part of parts) {
    const next: string[] = [];
    found = undefined;
    for (const directory of visible) {
      const path = `${directory}/${part}`;
      const stat = statOf(path);
      if (stat === undefined) continue;
      if (isWhiteout(stat)) break;
      // A lower file below a directory is hidden by it, and so is all that lies under the file.
      if (found !== undefined && !stat.isDirectory()) break;
      found ??= { path, stat };
      if (!stat.isDirectory()) break;
      next.push(path);
      if (readXattrs(path).get(OPAQUE_XATTR)?.toString() === "y") break;
    }
    if (found === undefined) return undefined;
    visible = next;
  }
  return found;
}

export function isWhiteout(stat: Stats): boolean {
  return stat.isCharacterDevice() && stat.rdev === 0;
}

function statOf(path: string): Stats | undefined {
  return lstatSync(Buffer.from(path, "latin1"), { throwIfNoEntry: false });
}
