/** Reading, mending and turning around patches, held against what git does with them. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mendPatch } from "../../src/import/patch/mend-patch.js";
import { PatchSyntaxError, parsePatch } from "../../src/import/patch/parse-patch.js";
import { reversePatch } from "../../src/import/patch/reverse-patch.js";
import { GOLD, TEST_PATCH } from "./rows.js";
import { workplace } from "./workplace.js";

const place = workplace();

function git(args: readonly string[], input = ""): { status: number | null; output: string } {
  const { status, stdout } = spawnSync("git", ["-C", place.directory, ...args], { input, encoding: "utf8" });
  return { status, output: stdout };
}

/** A patch git writes from one tree to another. */
function patchBetween(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): string {
  git(["init", "--quiet"]);
  commit(before);
  execFileSync("git", ["-C", place.directory, "rm", "-rq", "--ignore-unmatch", "."]);
  for (const [path, content] of Object.entries(after)) put(path, content);
  git(["add", "--all"]);
  return git(["diff", "--cached", "--find-renames", "--binary"]).output;
}

function commit(files: Readonly<Record<string, string>>): void {
  for (const [path, content] of Object.entries(files)) put(path, content);
  git(["add", "--all"]);
  git(["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "--allow-empty", "-m", "t"]);
}

function put(path: string, content: string): void {
  mkdirSync(dirname(join(place.directory, path)), { recursive: true });
  writeFileSync(join(place.directory, path), content);
}

const LONG = Array.from({ length: 30 }, (_, i) => `line ${i}\n`).join("");

describe("what git writes is read", () => {
  test("added, deleted, renamed, changed and quoted files, and lines without an end", () => {
    const patch = parsePatch(
      patchBetween(
        { "a.txt": LONG, "gone.txt": "x\n", "old name.txt": `${LONG}z\n`, "end.txt": "one\ntwo" },
        {
          "a.txt": LONG.replace("line 3\n", "").replace("line 20", "line twenty"),
          "new/ü.txt": "y\n",
          "new name.txt": `${LONG}Z\n`,
          "end.txt": "one\nthree",
          "empty.txt": "",
        },
      ),
    );
    const files = patch.files.map(({ kind, oldPath, newPath, addedLines, removedLines }) => [
      kind,
      oldPath,
      newPath,
      addedLines,
      removedLines,
    ]);
    expect(files).toEqual([
      ["modified", "a.txt", "a.txt", 1, 2],
      ["added", undefined, "empty.txt", 0, 0],
      ["modified", "end.txt", "end.txt", 1, 1],
      ["deleted", "gone.txt", undefined, 0, 1],
      ["renamed", "old name.txt", "new name.txt", 1, 1],
      ["added", undefined, "new/ü.txt", 1, 0],
    ]);
    expect(patch.files.map(({ text }) => text).join("")).toBe(patch.text);
  });

  test("a binary file with its content is kept, one without is left out and said", () => {
    const whole = patchBetween({ "b.bin": "\0one" }, { "b.bin": "\0two", "t.txt": "t\n" });
    expect(mendPatch(whole)).toMatchObject({ repairs: [], patch: { text: whole } });
    const hollow = whole.replace(
      /GIT binary patch[\s\S]*?\n\n[\s\S]*?\n\n/,
      "Binary files a/b.bin and b/b.bin differ\n",
    );
    const mended = mendPatch(hollow);
    expect(mended.repairs).toEqual(["changes binary files without their content, which was left out: b.bin"]);
    expect(mended.patch.files.map(({ newPath }) => newPath)).toEqual(["t.txt"]);
    expect(git(["reset", "--hard", "--quiet"]).status).toBe(0);
    expect(git(["apply", "--check"], mended.patch.text).status).toBe(0);
  });

  test("counts lines as git does", () => {
    const lines = fc.array(fc.constantFrom("a", "b", "", " c", "-d", "+e", "@@ x"), { maxLength: 12 });
    const trees = fc.tuple(lines, lines).filter(([a, b]) => a.join("\n") !== b.join("\n"));
    fc.assert(
      fc.property(trees, ([a, b]) => {
        const before = join(place.directory, "before");
        const after = join(place.directory, "after");
        writeFileSync(before, `${a.join("\n")}\nend\n`);
        writeFileSync(after, `${b.join("\n")}\nend\n`);
        const { output } = git(["diff", "--no-index", "before", "after"]);
        const [file] = parsePatch(output).files;
        const counted = git(["apply", "--numstat"], output).output.split("\t");
        expect([file!.addedLines, file!.removedLines]).toEqual(counted.slice(0, 2).map(Number));
      }),
      { numRuns: 40 },
    );
  });
});

describe("what is no patch is refused with its line", () => {
  test.each([
    ["text", "nothing\n", "changes no file"],
    ["a cut hunk", GOLD.split("\n").slice(0, 6).join("\n"), "line 4 is a hunk the patch ends within"],
    ["a hunk with a line too many", `${GOLD} more\n`, "line 8 belongs to no hunk"],
    ["a header that counts too few", GOLD.replace("-1,2 +1,2", "-1,1 +1,1"), "line 6 belongs to no hunk"],
    ["a lost first column", GOLD.replace("\n def", "\ndef"), "line 4 is a hunk whose header"],
    ["a path above the repository", GOLD.replaceAll("src/sum.py", "../sum.py"), "outside the repository"],
    ["git's own files", GOLD.replaceAll("src/sum.py", ".Git/hooks/sum.py"), "which is git's own"],
    [
      "a name no file can have",
      GOLD.replaceAll("sum.py", "s".repeat(256)),
      "line 1 has a name above 255 bytes",
    ],
    ["a hunk header that is none", GOLD.replace("@@ -1,2 +1,2 @@", "@@ here @@"), "line 4 is no hunk header"],
  ])("%s", (_, text, message) => {
    expect(() => mendPatch(text)).toThrow(PatchSyntaxError);
    expect(() => mendPatch(text)).toThrow(message);
  });

  test("git passes over the line too many, and takes the rest", () => {
    put("src/sum.py", "def add(a, b):\n    return a - b\n");
    git(["init", "--quiet"]);
    expect(git(["apply", "--check"], `${GOLD} more\n`).status).toBe(0);
  });
});

test("a missing last newline is added, and said", () => {
  const mended = mendPatch(GOLD.trimEnd());
  expect(mended.patch.text).toBe(GOLD);
  expect(mended.repairs).toEqual(["ended without a newline, which was added"]);
  expect(mendPatch(GOLD).repairs).toEqual([]);
});

describe("turned around", () => {
  test("it undoes what it did", () => {
    const before = { "a.txt": LONG, "gone.txt": "x\n", "old name.txt": `${LONG}z\n`, "end.txt": "one\ntwo" };
    const text = patchBetween(before, {
      "a.txt": LONG.replace("line 3\n", "").replace("line 20", "line twenty"),
      "new.txt": "y\n",
      "new name.txt": `${LONG}Z\n`,
      "end.txt": "one\nthree",
    });
    const { text: back } = reversePatch(parsePatch(text));
    expect(git(["apply", "--index"], back).status).toBe(0);
    expect(git(["diff", "--cached", "HEAD", "--stat"]).output).toBe("");
    expect(readFileSync(join(place.directory, "end.txt"), "utf8")).toBe("one\ntwo");
  });

  test("twice, it is what it was", () => {
    for (const text of [GOLD, TEST_PATCH]) {
      const patch = parsePatch(text);
      const twice = reversePatch(reversePatch(patch));
      expect(twice.files.map(({ text: own, ...file }) => file)).toEqual(
        patch.files.map(({ text: own, ...file }) => file),
      );
    }
    expect(reversePatch(reversePatch(parsePatch(GOLD))).text).toBe(GOLD);
  });
});
