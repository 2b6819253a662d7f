/** Owns the file of what to leave out: names of tasks, instances and repositories, one a line, `#` for remarks. */
import { readFileSync } from "node:fs";

/** The names, lower case. The file system's own error for a file that is not there. */
export function readExclusions(path: string): ReadonlySet<string> {
  const lines = readFileSync(path, "utf8").split(/\r?\n/);
  return new Set(
    lines
      .map((line) =>
        line
          .replace(/(^|\s)#.*$/, "")
          .trim()
          .toLowerCase(),
      )
      .filter((line) => line !== ""),
  );
}
