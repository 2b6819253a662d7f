/** Owns the temporary repository a harness works on, and what its work left in it. */
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { MARK, MARKS_FILE, markIn, SOURCE_FILE } from "./plan.js";

const run = promisify(execFile);

const FILES: Readonly<Record<string, string>> = {
  [SOURCE_FILE]: `function milestones() {\n  return "${markIn(MARK, 0)}";\n}\nmodule.exports = { milestones };\n`,
  "README.md": "A repository with one function.\n",
  "package.json": '{ "name": "milestones", "version": "1.0.0", "scripts": { "test": "node --test" } }\n',
};

/** Makes a repository with one commit. @throws when git is not installed */
export async function makeRepository(directory: string): Promise<void> {
  for (const [path, content] of Object.entries(FILES)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), content);
  }
  const git = (...args: string[]) =>
    run("git", ["-c", "user.name=mortise", "-c", "user.email=mortise@localhost", ...args], {
      cwd: directory,
    });
  await git("init", "--quiet", "--initial-branch=main");
  await git("add", ".");
  await git("commit", "--quiet", "--message", "A function");
}

/** Marks the harness really reached, in order. */
export async function reachedMarks(directory: string): Promise<string[]> {
  const marks = await readFile(join(directory, MARKS_FILE), "utf8").catch(() => "");
  if (marks !== "") return marks.trim().split("\n");
  const source = await readFile(join(directory, SOURCE_FILE), "utf8").catch(() => "");
  const [, last] = new RegExp(`"${MARK}-(\\d+)`).exec(source) ?? [];
  return Array.from({ length: Number(last ?? 0) }, (_, at) => markIn(MARK, at + 1));
}
