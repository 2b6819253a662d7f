/**
 * Owns `parsed_commit_content` of R2E-Gym: a commit as its tools took it apart, put together to a patch again.
 * Source of facts: R2E-Gym/R2E-Gym, commit_models/diff_classes.py and parse_diff.py.
 *
 * Its reader takes the empty line behind a diff for one more line of context; a hunk's own counts say where it ends.
 */
import { z } from "zod";

const range = z.looseObject({ start: z.int(), length: z.int().nullish() });
const file = z.looseObject({ path: z.string() });
const line = z.looseObject({ content: z.string(), type: z.enum(["context", "added", "deleted", "note"]) });
const hunk = z.looseObject({
  descriptor: z.looseObject({ old_range: range, new_range: range, section: z.string() }),
  line_group: z.looseObject({ all_lines: z.array(line) }),
});
const fileDiff = z.looseObject({
  header: z.looseObject({ file, misc_line: z.string().nullish() }),
  index_line: z
    .looseObject({ old_commit_hash: z.string(), new_commit_hash: z.string(), mode: z.string() })
    .nullish(),
  minus_file: file.nullish(),
  plus_file: file.nullish(),
  hunks: z.array(hunk).nullish(),
});

export const parsedCommit = z.looseObject({
  file_diffs: z.array(fileDiff),
  old_commit_hash: z.string(),
  commit_date: z.string().nullish(),
});
export type ParsedCommit = z.infer<typeof parsedCommit>;

type FileDiff = z.infer<typeof fileDiff>;
type Hunk = z.infer<typeof hunk>;

const MARKS = { context: " ", added: "+", deleted: "-", note: "\\ " } as const;
const TEST_DIRECTORIES: ReadonlySet<string> = new Set(["tests", "Tests", "test", "Test"]);

/**
 * The repair: the Python files that are no tests, as the data set itself takes its gold patch.
 * Throws RangeError where a hunk does not hold the lines it counts.
 */
export function repairOf(commit: ParsedCommit): string {
  return commit.file_diffs
    .filter(({ header }) => header.file.path.endsWith(".py") && !isTest(header.file.path))
    .map(patchOfFile)
    .join("");
}

function isTest(path: string): boolean {
  const parts = path.split("/");
  return (
    path.endsWith("_test.py") ||
    parts.at(-1)!.startsWith("test_") ||
    path.startsWith("test_") ||
    parts.some((part) => TEST_DIRECTORIES.has(part))
  );
}

function patchOfFile({ header, index_line: index, minus_file, plus_file, hunks }: FileDiff): string {
  const { path } = header.file;
  const mode = index?.mode ? ` ${index.mode}` : "";
  return [
    `diff --git a/${path} b/${path}\n`,
    header.misc_line ? `${header.misc_line}\n` : "",
    index ? `index ${index.old_commit_hash}..${index.new_commit_hash}${mode}\n` : "",
    minus_file && plus_file ? `--- ${minus_file.path}\n+++ ${plus_file.path}\n` : "",
    ...(hunks ?? []).map((one) => patchOfHunk(path, one)),
  ].join("");
}

function patchOfHunk(path: string, { descriptor, line_group }: Hunk): string {
  const { old_range: before, new_range: after, section } = descriptor;
  let left = before.length ?? 1;
  let right = after.length ?? 1;
  const lines: string[] = [];
  for (const { content, type } of line_group.all_lines) {
    const isOver = left === 0 && right === 0;
    if (isOver && type === "context" && content === "") continue;
    if (isOver && type !== "note") throw new RangeError(`${path} has a hunk with more lines than it counts`);
    if (type === "context" || type === "deleted") left--;
    if (type === "context" || type === "added") right--;
    lines.push(`${MARKS[type]}${content}\n`);
  }
  if (left !== 0 || right !== 0) throw new RangeError(`${path} has a hunk without the lines it counts`);
  return `@@ -${extent(before)} +${extent(after)} @@${section === "" ? "" : ` ${section}`}\n${lines.join("")}`;
}

function extent({ start, length }: z.infer<typeof range>): string {
  return length === undefined || length === null ? `${start}` : `${start},${length}`;
}
