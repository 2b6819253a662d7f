/**
 * Owns which files or modules a test command is given: those the test patch touches. A file the patch deletes is
 * left out: asked for a file that is not there, pytest runs nothing.
 */
import type { Patch } from "../patch/parse-patch.js";
import { quoted } from "./quoted.js";

/** What test patches carry beside tests; the endings `swebench` leaves out. */
const NO_TEST = /(\.json|\.png|csv|\.txt|\.md|\.jpg|\.jpeg|\.pkl|\.yml|\.yaml|\.toml)$/;

/** In the order of the patch, each once, quoted for a shell. */
export function directivesOf(tests: Patch, repo: string): string[] {
  const paths = tests.files.flatMap(({ newPath }) =>
    newPath === undefined || NO_TEST.test(newPath) ? [] : [newPath],
  );
  const isDjango = repo.toLowerCase() === "django/django";
  return [...new Set(isDjango ? paths.map(moduleOf) : paths)].map(quoted);
}

/** Django's runner takes modules below `tests/`. */
function moduleOf(path: string): string {
  return path
    .replace(/\.py$/, "")
    .replace(/^tests\//, "")
    .replaceAll("/", ".");
}
