/** What of a task's environment folder reaches a builder: never hidden tests or the solution, however they are put there. */
import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract } from "tar-stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { contextArchive, readContext } from "../../../src/images/build/context.js";
import { ignoreRules } from "../../../src/images/build/ignore-file.js";

const MAX_BYTES = 1 << 20;
const HIDDEN = `assert solution() == 42  # ${"never to be seen ".repeat(8)}\n`;
let task: string;

beforeEach(() => {
  task = mkdtempSync(path.join(tmpdir(), "mortise-context-"));
  write("environment/Dockerfile", "FROM a:1\n");
  write("tests/test.sh", HIDDEN);
  write("solution/solve.sh", `${HIDDEN}# solved\n`);
});
afterEach(() => rmSync(task, { recursive: true, force: true }));

function write(name: string, content = ""): void {
  mkdirSync(path.dirname(path.join(task, name)), { recursive: true });
  writeFileSync(path.join(task, name), content);
}

const names = async () => (await readContext(task, MAX_BYTES)).entries.map((entry) => entry.path);

async function archived(archive: Readable): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const reader = extract();
  reader.on("entry", (header, stream, next) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      files.set(`${header.type} ${header.name}`, Buffer.concat(chunks).toString());
      next();
    });
  });
  await pipeline(archive, reader as unknown as Writable);
  return files;
}

describe("hidden files", () => {
  test("beside the folder and in it stay out", async () => {
    write("environment/tests/test.py", "x");
    write("environment/solution/patch", "x");
    write("environment/src/tests/test_add.py", "the repository's own");
    expect(await names()).toEqual(["Dockerfile", "src", "src/tests", "src/tests/test_add.py"]);
  });

  test("are not sent as copies or by another name of the file", async () => {
    write("environment/src/innocent.txt", HIDDEN);
    await expect(names()).rejects.toThrow(
      /environment\/src\/innocent\.txt: it is the same as tests\/test\.sh/,
    );
    rmSync(path.join(task, "environment/src/innocent.txt"));
    write("tests/short", "x");
    linkSync(path.join(task, "tests/short"), path.join(task, "environment/src/linked"));
    await expect(names()).rejects.toThrow("the same as tests/short");
    write("environment/.dockerignore", "src/linked\n");
    expect(await names()).toEqual([".dockerignore", "Dockerfile", "src"]);
  });

  test("in folders called alike below them are known too", async () => {
    write("tests/tests/deep.py", `${HIDDEN}deep`);
    write("environment/copy.py", `${HIDDEN}deep`);
    await expect(names()).rejects.toThrow("the same as tests/tests/deep.py");
  });

  test("short files are alike by chance", async () => {
    write("tests/__init__.py");
    write("environment/src/__init__.py");
    expect(await names()).toContain("src/__init__.py");
  });

  test.each([["../tests/test.sh"], ["/etc/passwd"], ["src/../../solution"], [".."]])(
    "are not reached by a link to %s",
    async (target) => {
      write("environment/src/file");
      symlinkSync(target, path.join(task, "environment/link"));
      await expect(names()).rejects.toMatchObject({
        code: "MORTISE_TASK_BUILD",
        fix: expect.stringContaining(".dockerignore"),
      });
    },
  );

  test("are not the context itself", async () => {
    rmSync(path.join(task, "environment"), { recursive: true });
    symlinkSync(".", path.join(task, "environment"));
    await expect(names()).rejects.toThrow("environment: it is not a directory itself");
    rmSync(path.join(task, "environment"));
    mkdirSync(path.join(task, "environment"));
    symlinkSync("../tests/test.sh", path.join(task, "environment/Dockerfile"));
    await expect(names()).rejects.toThrow("environment/Dockerfile: it is not a file itself");
  });
});

test("links within, modes, and empty directories are kept; pipes are refused", async () => {
  write("environment/src/run.sh", "#!/bin/sh\n");
  execFileSync("chmod", ["6777", path.join(task, "environment/src/run.sh")]);
  mkdirSync(path.join(task, "environment/empty"));
  symlinkSync("src/run.sh", path.join(task, "environment/run"));
  const { entries } = await readContext(task, MAX_BYTES);
  expect(entries.map(({ path: name, kind, mode }) => [name, kind, mode])).toEqual([
    ["Dockerfile", "file", 0o644],
    ["empty", "directory", 0o755],
    ["run", "symlink", 0o777],
    ["src", "directory", 0o755],
    ["src/run.sh", "file", 0o755],
  ]);
  execFileSync("mkfifo", [path.join(task, "environment/pipe")]);
  await expect(names()).rejects.toThrow("environment/pipe: it is neither");
});

test("it has a size limit that names its key", async () => {
  write("environment/large", "x".repeat(MAX_BYTES));
  await expect(names()).rejects.toMatchObject({
    fix: expect.stringContaining("sandbox.images.build.contextBytes"),
  });
  write("environment/.dockerignore", "large");
  expect(await names()).toEqual([".dockerignore", "Dockerfile"]);
});

test("equal content is an equal archive, whenever and by whomever it was written", async () => {
  write("environment/a", "1");
  const first = await readContext(task, MAX_BYTES);
  const bytes = async () => {
    const chunks: Buffer[] = [];
    for await (const chunk of contextArchive(await readContext(task, MAX_BYTES), []))
      chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString("base64");
  };
  const before = await bytes();
  execFileSync("touch", ["-d", "2001-01-01", path.join(task, "environment/a")]);
  expect(await bytes()).toBe(before);
  write("environment/a", "2");
  expect((await readContext(task, MAX_BYTES)).digest).not.toBe(first.digest);
});

test("what changed since it was hashed is not sent", async () => {
  write("environment/a", "before");
  const context = await readContext(task, MAX_BYTES);
  const added = [{ path: "b", content: "added" }];
  expect(await archived(contextArchive(context, added))).toEqual(
    new Map([
      ["file b", "added"],
      ["file Dockerfile", "FROM a:1\n"],
      ["file a", "before"],
    ]),
  );
  write("environment/a", "behind");
  await expect(archived(contextArchive(context, added))).rejects.toThrow("environment/a: it changed");
  rmSync(path.join(task, "environment/a"));
  symlinkSync("../tests/test.sh", path.join(task, "environment/a"));
  await expect(archived(contextArchive(context, added))).rejects.toThrow("ELOOP");
  expect(readFileSync(path.join(task, "tests/test.sh"), "utf8")).toBe(HIDDEN);
});

describe(".dockerignore", () => {
  test.each([
    ["node_modules", ["node_modules", "node_modules/a"], ["src/node_modules", "node_modules2"]],
    ["**/node_modules", ["node_modules", "a/b/node_modules/c"], ["a/node_modulesx"]],
    ["*.log", ["a.log"], ["b/a.log", "a.logs"]],
    ["*/*.log", ["b/a.log"], ["a.log", "c/b/a.log"]],
    ["**/*.log", ["a.log", "c/b/a.log"], ["log"]],
    ["a/**", ["a/b", "a/b/c"], ["a"]],
    ["/a/", ["a", "a/b"], ["b/a"]],
    ["./a?[bc]", ["axb", "axc/d"], ["axd", "a/b"]],
    ["*\n!keep\n!dir/one", ["a", "dir", "dir/two"], ["keep", "dir/one"]],
    ["a\n!a\na/b", ["a/b"], ["a"]],
    ["# a\n\n \na.b", ["a.b"], ["# a", "axb", " "]],
    ["a\\*", ["a*"], ["ab"]],
    ["[^a]x", ["bx"], ["ax"]],
  ])("%j", (text, ignored, kept) => {
    const isIgnored = ignoreRules(text);
    expect([...ignored, ...kept].filter(isIgnored)).toEqual(ignored);
  });

  test("a pattern that is none names its line", () => {
    expect(() => ignoreRules("a\n[z-a]")).toThrow("environment/.dockerignore, line 2");
  });
});
