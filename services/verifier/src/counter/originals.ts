/**
 * Owns reading, in the sandbox, the test files a diff changes as they were before: what a diff shows of them is too
 * little to know what its lines stand in. Read before any command of the change's could run.
 */
import { parsePatch } from "@mortise/tasks";
import type { Step } from "../run/plan.js";
import type { RanStep } from "../run/run-record.js";

export const ORIGINALS = "originals";
const TIMEOUT_MS = 60_000;
/** Larger ones are data. */
const MAX_FILE_BYTES = 262_144;

/** For each file a line with its size and name, its bytes, and a line end. */
const SCRIPT = `for file do
  [ -f "$file" ] && [ ! -L "$file" ] || continue
  size=$(wc -c < "$file")
  [ "$size" -le ${MAX_FILE_BYTES} ] || continue
  printf '%d %s\\n' "$size" "$file"
  cat "$file"
  printf '\\n'
done
`;

/** The step; undefined where the diff changes no file that was there. */
export function originalsStep(diff: string): Step | undefined {
  const { files } = parsePatch(diff.endsWith("\n") ? diff : `${diff}\n`);
  const paths = files.filter(({ kind }) => kind === "modified").flatMap(({ oldPath }) => oldPath ?? []);
  if (paths.length === 0) return undefined;
  return { name: ORIGINALS, argv: ["/bin/sh", "-c", SCRIPT, ORIGINALS, ...paths], timeoutMs: TIMEOUT_MS };
}

/** By path; a file that was cut is left out. */
export function originalsOf(step: RanStep | undefined): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const bytes = Buffer.from(step?.stdout ?? []);
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf("\n", at);
    const header = /^(\d+) (.+)$/.exec(bytes.toString("utf8", at, end < 0 ? bytes.length : end));
    if (end < 0 || header === null) break;
    const to = end + 1 + Number(header[1]);
    if (to > bytes.length) break;
    found.set(header[2]!, bytes.toString("utf8", end + 1, to));
    at = to + 1;
  }
  return found;
}
