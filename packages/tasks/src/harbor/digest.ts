/**
 * Owns the digest of a task: one hash over every file of its directory, so a verdict can name exactly what was
 * asked and how it was tested. Does not read the task's meaning.
 */
import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** One file of a task directory: `x` executable, `-` not, `l` a symbolic link with its target as content. */
export interface TaskFileContent {
  /** Relative to the task directory, "/" separated. */
  readonly path: string;
  readonly kind: "x" | "-" | "l";
  readonly content: string | Uint8Array;
}

/**
 * SHA-256 (lower-case hex) over one line per file, sorted by path in code-unit order:
 * `<path>\0<kind>\0<sha256 of the content>\n`. Times and owners do not count.
 */
export function digestOfFiles(files: readonly TaskFileContent[]): string {
  const total = createHash("sha256");
  for (const file of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    total.update(`${file.path}\0${file.kind}\0${createHash("sha256").update(file.content).digest("hex")}\n`);
  }
  return total.digest("hex");
}

/** The digest of a task directory as it is on disk. */
export function taskDigest(task: { readonly directory: string } | string): string {
  const root = typeof task === "string" ? task : task.directory;
  return digestOfFiles(filesBelow(root).map((path) => readContent(root, path)));
}

/** Paths of all files and links below a directory, "/" separated, sorted by code unit. */
export function filesBelow(root: string): string[] {
  const paths: string[] = [];
  const visit = (prefix: string) => {
    for (const entry of readdirSync(join(root, prefix), { withFileTypes: true })) {
      const path = prefix === "" ? entry.name : `${prefix}/${entry.name}`;
      if (entry.isDirectory()) visit(path);
      else paths.push(path);
    }
  };
  visit("");
  return paths.sort();
}

function readContent(root: string, path: string): TaskFileContent {
  const full = join(root, path);
  const stat = lstatSync(full);
  if (stat.isSymbolicLink()) return { path, kind: "l", content: readlinkSync(full) };
  return { path, kind: (stat.mode & 0o100) !== 0 ? "x" : "-", content: readFileSync(full) };
}
