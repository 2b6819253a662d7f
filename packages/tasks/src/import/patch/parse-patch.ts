/**
 * Owns reading a unified diff as `git apply` reads it, but without its leniency: lines that belong to no hunk are
 * an error here, where git passes over them and applies the rest. Does not apply anything.
 */
import { unquotePath } from "./quoted-path.js";

export interface PatchFile {
  readonly kind: "added" | "deleted" | "modified" | "renamed";
  /** Absent of an added file. Relative to the repository. */
  readonly oldPath?: string;
  /** Absent of a deleted file. */
  readonly newPath?: string;
  /** A binary change whose content the patch does not hold: nobody can apply it. */
  readonly isHollow: boolean;
  readonly addedLines: number;
  readonly removedLines: number;
  /** The lines of this file, with their ends. */
  readonly text: string;
}

export interface Patch {
  readonly text: string;
  readonly files: readonly PatchFile[];
}

export class PatchSyntaxError extends Error {}

interface Draft {
  start: number;
  oldPath: string | undefined;
  newPath: string | undefined;
  isAdded: boolean;
  isDeleted: boolean;
  isRenamed: boolean;
  isHollow: boolean;
  hasContent: boolean;
  addedLines: number;
  removedLines: number;
}

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const GIT_HEADER = /^diff --git (?:"?a\/(.+?)"? "?b\/(.+?)"?)$/;
/** Bytes of one name that file systems take. */
const MAX_NAME_BYTES = 255;
/** What ends a patch taken from an e-mail. */
const SIGNATURE = "-- ";

/** Reads a patch that ends with a newline. Throws PatchSyntaxError with the line. */
export function parsePatch(text: string): Patch {
  return new PatchReader(text).read();
}

class PatchReader {
  readonly #lines: string[];
  readonly #files: PatchFile[] = [];
  readonly #text: string;
  #draft: Draft | undefined;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#lines = text.split("\n");
    this.#lines.pop();
  }

  read(): Patch {
    while (this.#at < this.#lines.length) this.#line(this.#lines[this.#at]!);
    this.#close();
    if (this.#files.length === 0) throw new PatchSyntaxError("changes no file");
    return { text: this.#text, files: this.#files };
  }

  #line(line: string): void {
    if (line.startsWith("diff --git ")) this.#open(line);
    else if (line.startsWith("--- ") && this.#lines[this.#at + 1]?.startsWith("+++ ")) this.#names(line);
    else if (line.startsWith("@@ ")) this.#hunk(line);
    else if (this.#draft === undefined || line === "") this.#at++;
    else if (line.startsWith("Binary files ") || line.startsWith("Files ")) this.#hollow();
    else if (line === "GIT binary patch") this.#binary();
    else if (this.#draft.hasContent) this.#behindHunk(line);
    else this.#extendedHeader(line);
  }

  #open(line: string): void {
    this.#close();
    const names = GIT_HEADER.exec(line);
    this.#draft = { ...emptyDraft(this.#at), oldPath: names?.[1], newPath: names?.[2] };
    this.#at++;
  }

  #names(line: string): void {
    if (this.#draft === undefined || this.#draft.hasContent) {
      this.#close();
      this.#draft = emptyDraft(this.#at);
    }
    const oldPath = pathOf(line.slice(4), "a/");
    const newPath = pathOf(this.#lines[this.#at + 1]!.slice(4), "b/");
    this.#draft.isAdded ||= oldPath === undefined;
    this.#draft.isDeleted ||= newPath === undefined;
    this.#draft.oldPath = oldPath ?? newPath;
    this.#draft.newPath = newPath ?? oldPath;
    this.#at += 2;
  }

  #extendedHeader(line: string): void {
    const draft = this.#draft!;
    if (line.startsWith("new file mode ")) draft.isAdded = true;
    else if (line.startsWith("deleted file mode ")) draft.isDeleted = true;
    else if (line.startsWith("rename from ")) draft.oldPath = unquotePath(line.slice(12));
    else if (line.startsWith("rename to ")) draft.newPath = unquotePath(line.slice(10));
    else if (line.startsWith("copy from ")) draft.oldPath = unquotePath(line.slice(10));
    else if (line.startsWith("copy to ")) draft.newPath = unquotePath(line.slice(8));
    if (line.startsWith("rename ")) draft.isRenamed = true;
    if (line.startsWith("copy ")) draft.isAdded = true;
    this.#at++;
  }

  #hunk(line: string): void {
    const header = HUNK.exec(line);
    if (header === null) this.#fail(this.#at, "is no hunk header");
    if (this.#draft === undefined) this.#fail(this.#at, "is a hunk of no file");
    const start = this.#at++;
    let left = { old: Number(header[1] ?? 1), new: Number(header[2] ?? 1) };
    while (left.old > 0 || left.new > 0) {
      if (this.#at >= this.#lines.length) this.#fail(start, "is a hunk the patch ends within");
      left = this.#hunkLine(this.#lines[this.#at]!, left, start);
      this.#at++;
    }
    while (this.#lines[this.#at]?.startsWith("\\")) this.#at++;
    this.#draft.hasContent = true;
  }

  #hunkLine(line: string, left: { old: number; new: number }, start: number): { old: number; new: number } {
    const mark = line[0];
    if (mark === "\\") return left;
    const isOld = mark === " " || mark === "-" || mark === undefined;
    const isNew = mark === " " || mark === "+" || mark === undefined;
    const rest = { old: left.old - Number(isOld), new: left.new - Number(isNew) };
    if ((!isOld && !isNew) || rest.old < 0 || rest.new < 0)
      this.#fail(start, "is a hunk whose header does not count its lines");
    if (isOld && !isNew) this.#draft!.removedLines++;
    if (isNew && !isOld) this.#draft!.addedLines++;
    return rest;
  }

  #behindHunk(line: string): void {
    if (line !== SIGNATURE) this.#fail(this.#at, "belongs to no hunk");
    this.#close();
    this.#at++;
  }

  #hollow(): void {
    this.#draft!.isHollow = true;
    this.#draft!.hasContent = true;
    this.#at++;
  }

  /** One or two blocks of encoded lines, each ended by an empty line. */
  #binary(): void {
    this.#at++;
    while (/^(literal|delta) \d+$/.test(this.#lines[this.#at] ?? "")) {
      while (this.#at < this.#lines.length && this.#lines[this.#at] !== "") this.#at++;
      this.#at++;
    }
    this.#draft!.hasContent = true;
  }

  #close(): void {
    const draft = this.#draft;
    this.#draft = undefined;
    if (draft === undefined) return;
    const { oldPath, newPath } = draft;
    if (oldPath === undefined || newPath === undefined) this.#fail(draft.start, "names no file");
    for (const path of [oldPath, newPath]) this.#checkPath(path, draft.start);
    const kind = draft.isAdded
      ? "added"
      : draft.isDeleted
        ? "deleted"
        : draft.isRenamed
          ? "renamed"
          : "modified";
    this.#files.push({
      kind,
      ...(kind === "added" ? {} : { oldPath }),
      ...(kind === "deleted" ? {} : { newPath }),
      isHollow: draft.isHollow,
      addedLines: draft.addedLines,
      removedLines: draft.removedLines,
      text: `${this.#lines.slice(draft.start, this.#at).join("\n")}\n`,
    });
  }

  /** As `git apply` refuses paths; `patch`, which is tried after it, would follow them. */
  #checkPath(path: string, line: number): void {
    const names = path.split("/");
    if (path.startsWith("/") || names.includes(".."))
      this.#fail(line, `names ${path}, which is outside the repository`);
    if (names.some((name) => name.toLowerCase() === ".git"))
      this.#fail(line, `names ${path}, which is git's own`);
    if (names.some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES))
      this.#fail(line, `has a name above ${MAX_NAME_BYTES} bytes, which no file can have`);
  }

  #fail(line: number, what: string): never {
    throw new PatchSyntaxError(`line ${line + 1} ${what}`);
  }
}

function emptyDraft(start: number): Draft {
  return {
    start,
    oldPath: undefined,
    newPath: undefined,
    isAdded: false,
    isDeleted: false,
    isRenamed: false,
    isHollow: false,
    hasContent: false,
    addedLines: 0,
    removedLines: 0,
  };
}

/** A path of a `---` or `+++` line; undefined for /dev/null. */
function pathOf(text: string, prefix: string): string | undefined {
  const path = text.startsWith('"') ? unquotePath(text) : text.replace(/\t.*$/, "").replace(/\r$/, "");
  if (path === "/dev/null") return undefined;
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}
