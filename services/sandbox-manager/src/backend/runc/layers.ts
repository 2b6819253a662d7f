/**
 * Owns looking into a stack of layer directories as an overlay would show them, without mounting one: whiteouts,
 * opaque directories, a leaf that hides a directory and the other way round. Changes nothing.
 *
 * Layers are topmost first. No link is followed: a path that leads through one is answered with that link.
 */
import { lstatSync, readdirSync, type Stats } from "node:fs";
import path from "node:path";
import { utf8Name } from "../../patch/snapshot.js";
import { isOpaque } from "./syscalls.js";

export type Place =
  | {
      readonly kind: "directory";
      /** The same directory of every layer that shows there, topmost first. */
      readonly directories: readonly string[];
      /** Of the topmost one, whose owner and mode are what is seen. */
      readonly stat: Stats;
    }
  | { readonly kind: "leaf"; readonly file: string; readonly stat: Stats }
  /** A component before the last is a symbolic link. */
  | { readonly kind: "link"; readonly at: string }
  | { readonly kind: "nothing" };

export function isWhiteout(stat: Stats): boolean {
  return stat.isCharacterDevice() && stat.rdev === 0;
}

/** What is at an absolute path. */
export function lookUp(layers: readonly string[], absolute: string): Place {
  let place: Place = { kind: "directory", directories: layers, stat: lstatSync(layers[0]!) };
  const parts = absolute.split("/").filter((part) => part !== "");
  for (const [at, part] of parts.entries()) {
    if (place.kind === "leaf")
      return place.stat.isSymbolicLink()
        ? { kind: "link", at: `/${parts.slice(0, at).join("/")}` }
        : { kind: "nothing" };
    if (place.kind !== "directory") return place;
    place = below(place.directories, part);
  }
  return place;
}

function below(directories: readonly string[], name: string): Place {
  const found: string[] = [];
  let top: Stats | undefined;
  for (const directory of directories) {
    const file = path.join(directory, name);
    const stat = lstatSync(file, { throwIfNoEntry: false });
    if (stat === undefined) continue;
    if (isWhiteout(stat)) break;
    if (!stat.isDirectory()) {
      if (top === undefined) return { kind: "leaf", file, stat };
      break;
    }
    top ??= stat;
    found.push(file);
    if (isOpaque(file)) break;
  }
  return top === undefined ? { kind: "nothing" } : { kind: "directory", directories: found, stat: top };
}

/** A leaf that shows below a directory of the stack. */
export interface ShownLeaf {
  /** Relative to the directory. */
  readonly path: string;
  readonly file: string;
  readonly stat: Stats;
}

/**
 * The leaves that show below the merged `directories`; what `isPassedOver` says of a name is neither shown nor
 * entered. Names that are no UTF-8 are left out.
 */
export function* leavesBelow(
  directories: readonly string[],
  isPassedOver: (name: string) => boolean,
  relative = "",
): Generator<ShownLeaf> {
  for (const name of namesIn(directories)) {
    if (isPassedOver(name)) continue;
    const place = below(directories, name);
    const leafPath = relative === "" ? name : `${relative}/${name}`;
    if (place.kind === "directory") yield* leavesBelow(place.directories, isPassedOver, leafPath);
    else if (place.kind === "leaf") yield { path: leafPath, file: place.file, stat: place.stat };
  }
}

/** What shows directly in the merged `directories`, by name. Names that are no UTF-8 are left out. */
export function* shownBelow(
  directories: readonly string[],
): Generator<{ readonly name: string; readonly place: Extract<Place, { kind: "directory" | "leaf" }> }> {
  for (const name of namesIn(directories)) {
    const place = below(directories, name);
    if (place.kind === "directory" || place.kind === "leaf") yield { name, place };
  }
}

function namesIn(directories: readonly string[]): Set<string> {
  const names = new Set<string>();
  for (const directory of directories)
    for (const raw of readdirSync(directory, { encoding: "buffer" })) {
      const name = utf8Name(raw);
      if (name !== undefined) names.add(name);
    }
  return names;
}
