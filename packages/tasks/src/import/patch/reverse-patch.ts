/**
 * Owns turning a text patch around, so that it undoes what it did. Does not turn binary changes or copies around:
 * their patches do not hold what was there before.
 */
import { type Patch, type PatchFile, PatchSyntaxError, parsePatch } from "./parse-patch.js";

const HUNK = /^@@ -(\S+) \+(\S+) @@(.*)$/;

/** The reverse of a patch. Throws PatchSyntaxError for one that has none. */
export function reversePatch(patch: Patch): Patch {
  return parsePatch(patch.files.map(reverseFile).join(""));
}

function reverseFile({ text, oldPath, newPath }: PatchFile): string {
  const lines = text.split("\n").slice(0, -1);
  const hunks = lines.findIndex((line) => line.startsWith("@@ "));
  const header = hunks < 0 ? lines : lines.slice(0, hunks);
  if (header.some((line) => line === "GIT binary patch" || line.startsWith("copy from ")))
    throw new PatchSyntaxError(`changes ${newPath ?? oldPath} in a way that cannot be turned around`);
  const body = hunks < 0 ? [] : lines.slice(hunks);
  return `${[...reverseHeader(header), ...reverseHunks(body)].join("\n")}\n`;
}

/** Pairs of lines that change places, each with what stands behind its first word. */
const PAIRS: readonly (readonly [string, string])[] = [
  ["--- ", "+++ "],
  ["old mode ", "new mode "],
  ["rename from ", "rename to "],
];

function reverseHeader(header: readonly string[]): string[] {
  return header.map((line) => {
    const names = /^diff --git ("?)a\/(.+) ("?)b\/(.+)$/.exec(line);
    if (names !== null) return `diff --git ${names[3]}a/${names[4]} ${names[1]}b/${names[2]}`;
    if (line.startsWith("new file mode ")) return line.replace("new file", "deleted file");
    if (line.startsWith("deleted file mode ")) return line.replace("deleted file", "new file");
    if (line.startsWith("index ")) return line.replace(/^index (\w+)\.\.(\w+)/, "index $2..$1");
    const pair = PAIRS.find(([first, second]) => line.startsWith(first) || line.startsWith(second));
    if (pair === undefined) return line;
    const [own, other] = line.startsWith(pair[0]) ? pair : [pair[1], pair[0]];
    const partner = header.find((candidate) => candidate.startsWith(other));
    return partner === undefined ? line : `${own}${exchanged(partner.slice(other.length), own)}`;
  });
}

/** The path of the other side, with the prefix of this one. */
function exchanged(path: string, own: string): string {
  if (own === "--- ") return path.replace(/^("?)b\//, "$1a/");
  return own === "+++ " ? path.replace(/^("?)a\//, "$1b/") : path;
}

function reverseHunks(body: readonly string[]): string[] {
  const result: string[] = [];
  // Lines of one change, each with the mark of a missing newline that may follow it.
  let removed: string[] = [];
  let added: string[] = [];
  const settle = () => {
    result.push(...removed, ...added);
    removed = [];
    added = [];
  };
  let last = result;
  for (const line of body) {
    if (line.startsWith("+")) {
      removed.push(`-${line.slice(1)}`);
      last = removed;
    } else if (line.startsWith("-")) {
      added.push(`+${line.slice(1)}`);
      last = added;
    } else if (line.startsWith("\\")) {
      last.push(line);
    } else {
      settle();
      const hunk = HUNK.exec(line);
      result.push(hunk === null ? line : `@@ -${hunk[2]} +${hunk[1]} @@${hunk[3]}`);
      last = result;
    }
  }
  settle();
  return result;
}
