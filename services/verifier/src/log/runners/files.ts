/** Owns the files given to test runners, as they are mounted. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mount } from "../runner.js";

const ROOT = join(import.meta.dirname, "../../../runners");

/** The named files of one folder, below `target`. */
export function mounted(target: string, folder: string, names: readonly string[]): Mount {
  const files = names.map((path) => ({ path, content: readFileSync(join(ROOT, folder, path)) }));
  return { target, files };
}

/** How often a pattern with the flag `g` is in a line. */
export function countOf(pattern: RegExp): (line: string) => number {
  return (line) => [...line.matchAll(pattern)].length;
}
