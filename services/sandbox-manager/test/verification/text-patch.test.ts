/** Unified diffs on real git and patch: which attempt applies them, and what failed ones leave. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { applyDiff, type BaseFile, pathsOfDiff } from "../../src/verification/text-patch.js";

const lines = (...all: (string | number)[]) => `${all.join("\n")}\n`;
const file = (content: string, isExecutable = false): BaseFile => ({
  content: Buffer.from(content),
  isExecutable,
});
const BASE = lines(1, 2, 3, 4, 5, 6, 7, 8, 9);
const DIFF = `--- a/src/a.txt\n+++ b/src/a.txt\n@@ -3,5 +3,5 @@\n 3\n 4\n-5\n+five\n 6\n 7\n`;

const scratch = mkdtempSync(path.join(tmpdir(), "mortise-text-patch-"));
afterEach(() => expect(readdirSync(scratch)).toEqual([]));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

async function apply(diff: string, base: Record<string, BaseFile>) {
  const bytes = Buffer.from(diff);
  return applyDiff(bytes, pathsOfDiff("d", bytes), new Map(Object.entries(base)), scratch);
}
const contentOf = (result: Awaited<ReturnType<typeof apply>>, path: string) =>
  "files" in result ? result.files.get(path)?.content.toString() : result.failure;

test("a diff that fits is applied by git", async () => {
  const result = await apply(DIFF, { "src/a.txt": file(BASE, true) });
  expect(result).toMatchObject({ rung: "apply" });
  expect(contentOf(result, "src/a.txt")).toBe(BASE.replace("5", "five"));
  expect("files" in result && result.files.get("src/a.txt")?.isExecutable).toBe(true);
});

test("a diff without its last newline is mended, files are added and removed", async () => {
  const diff = `--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+fresh`;
  const result = await apply(diff, { "old.txt": file("gone\n") });
  expect(contentOf(result, "new.txt")).toBe("fresh\n");
  expect("files" in result && [...result.files]).toContainEqual(["old.txt", undefined]);
});

test("a diff whose context changed is applied by patch, from clean files", async () => {
  const drifted = lines(1, 2, "three", 4, 5, 6, "seven", 8, 9);
  const result = await apply(DIFF, { "src/a.txt": file(drifted) });
  expect(result).toMatchObject({ rung: "fuzz" });
  expect(contentOf(result, "src/a.txt")).toBe(drifted.replace("5", "five"));
});

test("a diff of which one part fits leaves nothing behind and says why", async () => {
  const second = "@@ -30,3 +30,3 @@\n x\n-y\n+z\n w\n";
  const result = await apply(DIFF + second, { "src/a.txt": file(BASE) });
  expect(result).toMatchObject({ failure: expect.stringMatching(/hunk|FAILED|apply/i) });
});

test("a change that is there already is told from one that does not fit", async () => {
  const result = await apply(DIFF, { "src/a.txt": file(BASE.replace("5", "five")) });
  expect(result).toEqual({ failure: "what it changes is there already" });
});

test("configuration of a repository or a user is not read", async () => {
  const base = {
    "src/a.txt": file(BASE),
    ".gitattributes": file("* text eol=crlf\n"),
    ".gitconfig": file("[core]\n\tautocrlf = true\n"),
  };
  const result = await apply(DIFF, base);
  expect(contentOf(result, "src/a.txt")).not.toContain("\r");
});

test("what is no diff, or leaves the work tree, is refused", () => {
  expect(() => pathsOfDiff("d", Buffer.from("hello"))).toThrow(/the diff d is none/);
  const outside = DIFF.replaceAll("src/a.txt", "../a.txt");
  expect(() => pathsOfDiff("d", Buffer.from(outside))).toThrow(/outside/);
});
