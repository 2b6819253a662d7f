/**
 * Owns access to the bundled library "tally": its files at the head of its history, where a function stands in
 * a file, and the import of the history itself. Does not change the library.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MortiseError } from "@mortise/contracts";
import { parse } from "acorn";

const LIBRARY = fileURLToPath(new URL("../../library/", import.meta.url));
const HISTORY = fileURLToPath(new URL("../../library.history", import.meta.url));

/** Text by path relative to the repository, "/" separated, sorted by path. */
export type SourceTree = Readonly<Record<string, string>>;

/** The library at the head of its history. */
export function readLibrary(): SourceTree {
  const paths = readdirSync(LIBRARY, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(LIBRARY.length).replaceAll("\\", "/"));
  return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(LIBRARY, path), "utf8")]));
}

/** Character range of a top-level function declaration in a CommonJS module. */
export function locateFunction(source: string, name: string): { start: number; end: number } {
  const program = parse(source, { ecmaVersion: "latest", sourceType: "script" });
  for (const node of program.body) {
    if (node.type === "FunctionDeclaration" && node.id.name === name)
      return { start: node.start, end: node.end };
  }
  throw new MortiseError({
    code: "MORTISE_TASK_INVALID",
    message: `"${name}" is not declared at the top level of the library's file.`,
    fix: "Restore packages/tasks/library from version control.",
  });
}

/**
 * Creates a git repository with the library's whole history, its work tree at the head.
 * Needs git on PATH. Returns the head commit's id.
 */
export function importLibraryHistory(directory: string): string {
  const git = (args: string[], input?: Buffer) => {
    const done = spawnSync("git", ["-C", directory, ...args], { input, encoding: "utf8" });
    if (done.status === 0) return done.stdout.trim();
    throw new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: `${directory}: git ${args[0]} failed: ${(done.stderr || done.error?.message || "").trim()}`,
      fix: "Name an existing empty directory and install git.",
    });
  };
  git(["init", "--quiet", "--initial-branch=main"]);
  git(["fast-import", "--quiet"], readFileSync(HISTORY));
  git(["reset", "--quiet", "--hard", "main"]);
  return git(["rev-parse", "main"]);
}
