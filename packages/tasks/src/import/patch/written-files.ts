/** Owns making a patch that adds files, for data sets that hold files where others hold a patch. */

/** `git diff` of files that were not there. Paths need no quoting: letters, digits, `_`, `-`, `.` and `/`. */
export function patchAdding(files: ReadonlyMap<string, string>): string {
  return [...files].map(([path, content]) => header(path) + hunk(path, content)).join("");
}

function header(path: string): string {
  return `diff --git a/${path} b/${path}\nnew file mode 100644\n`;
}

function hunk(path: string, content: string): string {
  if (content === "") return "index 0000000..e69de29\n";
  const endsWithNewline = content.endsWith("\n");
  const lines = (endsWithNewline ? content.slice(0, -1) : content).split("\n");
  const added = lines.map((line) => `+${line}\n`).join("");
  const note = endsWithNewline ? "" : "\\ No newline at end of file\n";
  return `--- /dev/null\n+++ b/${path}\n@@ -0,0 +1,${lines.length} @@\n${added}${note}`;
}
