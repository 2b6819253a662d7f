/**
 * Owns what besides history tends to hold an answer and is needed by no task: caches of package managers, backups of
 * editors, shell histories, bundles, compiled files of other sources, metadata that names an upstream commit. Decides
 * by names and a few first bytes; the search that follows decides by content. Moves nothing itself.
 */
import { bytesOf, isWithin, joined, nameOf, parentOf } from "./byte-path.js";
import { moduleOfCompiled } from "./probes/python-module.js";
import type { Entry, Listing, RootDirectory } from "./root-directory.js";
import type { TakenKind } from "./types.js";

/** Below a home directory. */
const CACHES = [
  ".cache/pip",
  ".cache/uv",
  ".cache/pypoetry",
  ".cache/pdm",
  ".cache/pipenv",
  ".cache/yarn",
  ".npm/_cacache",
  ".npm/_logs",
  ".yarn/cache",
  ".yarn/berry/cache",
];
const HOMES = /^(?:root|home\/[^/]+|)$/;
const SHELL_HISTORY =
  /^\.(?:(?:bash|zsh|sh|ash|fish|python|ipython|node_repl|sqlite|psql|mysql|gdb)_history|lesshst|viminfo|git-credentials)$/;
const BACKUP = /^(?:.*\.(?:orig|rej|bak|backup|old|save|swp|swo|swn)|.*~|#.*#|\.#.*|\..*\.sw[a-p])$/;
/** Written by tools into a working tree, from whatever sources it once had. */
const TOOL_CACHES = new Set([".pytest_cache", ".mypy_cache", ".ruff_cache", ".pytype", ".hypothesis"]);
const BUNDLE_MAGIC = /^# v[23] git bundle\n/;
const PYC_HEADER_BYTES = 16;

export interface Leftover {
  readonly path: string;
  readonly kind: TakenKind;
}

export interface WorkspaceFiles {
  /** Of the working tree; undefined where there is no repository. */
  readonly top: string;
  readonly isTracked: (path: string) => boolean;
  /** The modules the answers change, as probes/python-module.ts calls them. */
  readonly touched: ReadonlySet<string>;
}

export function leftoversOf(root: RootDirectory, listing: Listing, workspace: WorkspaceFiles): Leftover[] {
  const isInside = isWithin(listing.path, workspace.top);
  const found: Leftover[] = [];
  const add = (path: string, kind: TakenKind) => found.push({ path, kind });
  if (HOMES.test(listing.path))
    for (const cache of CACHES) {
      const at = joined(listing.path, cache);
      if (root.locate(at) === at) add(at, "cache");
    }
  for (const entry of listing.entries) {
    if (workspace.isTracked(entry.path)) continue;
    if (entry.kind === "directory") {
      if (isInside && TOOL_CACHES.has(entry.name)) add(entry.path, "cache");
      else if (isInside && entry.name === "__pycache__") add(entry.path, "bytecode");
      continue;
    }
    if (SHELL_HISTORY.test(entry.name)) add(entry.path, "shell-history");
    else if (isInside && BACKUP.test(entry.name)) add(entry.path, "backup");
    else if (entry.kind !== "file") continue;
    else if (entry.name.endsWith(".bundle") && BUNDLE_MAGIC.test(root.text(entry.path, 32) ?? ""))
      add(entry.path, "bundle");
    else if (entry.name.endsWith(".pyc") && isStaleBytecode(root, entry, isInside, workspace.touched))
      add(entry.path, "bytecode");
    else if (namesUpstreamCommit(root, entry)) add(entry.path, "install-metadata");
  }
  return found;
}

/**
 * Whether a compiled Python file was made from another source than the one beside it, where that may matter: in the
 * workspace, or for a module of a name the answers change. Only caches: a compiled file in a module's own place is a
 * program.
 */
function isStaleBytecode(
  root: RootDirectory,
  entry: Entry,
  isInside: boolean,
  touched: ReadonlySet<string>,
): boolean {
  const directory = parentOf(entry.path);
  if (nameOf(directory) !== "__pycache__") return false;
  const stem = entry.name.slice(0, entry.name.indexOf("."));
  if (isInside) return true;
  if (!touched.has(moduleOfCompiled(entry.path))) return false;
  const source = root.stat(joined(parentOf(directory), `${stem}.py`));
  const header = bytesOf(root.text(entry.path, PYC_HEADER_BYTES) ?? "");
  if (source?.isFile() !== true || header.byteLength < PYC_HEADER_BYTES) return true;
  // Flags other than 0 mean that the source's hash is there instead of its time and size: PEP 552.
  const isTimed = header.readUInt32LE(4) === 0;
  const seconds = Math.floor(source.mtimeMs / 1000) % 2 ** 32;
  return !isTimed || header.readUInt32LE(8) !== seconds || header.readUInt32LE(12) !== source.size % 2 ** 32;
}

/** PEP 610: where a package was installed from, with the commit when that was a repository. */
function namesUpstreamCommit(root: RootDirectory, entry: Entry): boolean {
  if (entry.name !== "direct_url.json" || !nameOf(parentOf(entry.path)).endsWith(".dist-info")) return false;
  return (root.text(entry.path) ?? "").includes('"vcs_info"');
}
