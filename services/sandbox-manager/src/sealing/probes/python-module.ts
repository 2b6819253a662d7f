/**
 * Owns what a Python module is called for telling compiled files of it: its file's name, and for a package's own
 * files, which are called alike in every package, the package's name before it. Does not say where packages lie:
 * installed ones have other parents than those in a repository.
 */
import { nameOf, parentOf } from "../byte-path.js";

const OF_EVERY_PACKAGE = new Set(["__init__", "__main__"]);
const CACHE = "__pycache__";

/** `names` for `src/app/names.py`, `app/__init__` for `src/app/__init__.py`. */
export function moduleOfSource(at: string): string {
  return moduleIn(parentOf(at), nameOf(at).replace(/\.[^.]*$/, ""));
}

/** As `moduleOfSource` of the source; compiled files lie beside it, or in a cache with a version in their names. */
export function moduleOfCompiled(at: string): string {
  const directory = parentOf(at);
  const name = nameOf(at);
  return moduleIn(
    nameOf(directory) === CACHE ? parentOf(directory) : directory,
    name.slice(0, name.indexOf(".")),
  );
}

function moduleIn(directory: string, stem: string): string {
  return OF_EVERY_PACKAGE.has(stem) ? `${nameOf(directory)}/${stem}` : stem;
}
