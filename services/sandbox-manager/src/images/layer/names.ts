/**
 * Owns what names in a layer mean: parts of a path below the root, and the markers that take lower entries away.
 * Does not touch the file system.
 */
import { layerRefused } from "../image-errors.js";

/** Linux's own limits; the depth keeps walks short. */
const MAX_PATH_BYTES = 4095;
const MAX_PART_BYTES = 255;
const MAX_DEPTH = 512;

const MARK = ".wh.";
const OPAQUE = ".wh..wh..opq";
const METADATA = ".wh..wh.";

/** Parts of a name below the layer's root; empty for the root. An absolute name is taken relative to it. */
export function partsOf(name: string): string[] {
  if (name.includes("\0")) throw layerRefused("its name contains a NUL", name);
  if (name.length > MAX_PATH_BYTES) throw layerRefused("its name is too long", name);
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw layerRefused("its name contains ..", name);
  if (parts.length > MAX_DEPTH) throw layerRefused(`it lies deeper than ${MAX_DEPTH} directories`, name);
  if (parts.some((part) => part.length > MAX_PART_BYTES))
    throw layerRefused("a part of its name is too long", name);
  return parts;
}

export type Mark =
  | { readonly kind: "whiteout"; readonly hidden: string }
  | { readonly kind: "opaque" }
  /** Bookkeeping of the file system that invented these marks. */
  | { readonly kind: "metadata" };

/** What the last part of a name marks, or undefined for an ordinary name (`.wh_x` and `a.wh.b` are ordinary). */
export function markOf(base: string, name: string): Mark | undefined {
  if (!base.startsWith(MARK)) return undefined;
  if (base === OPAQUE) return { kind: "opaque" };
  if (base.startsWith(METADATA)) return { kind: "metadata" };
  const hidden = base.slice(MARK.length);
  if (hidden === "" || hidden === "." || hidden === "..")
    throw layerRefused("it marks no name as deleted", name);
  return { kind: "whiteout", hidden };
}
