/**
 * Repositories made to do harm: nothing of them is executed, nothing outside the root is read, changed or moved.
 * Needs root and git.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hideHistory } from "../../src/sealing/hide-history.js";
import { searchForAnswers } from "../../src/sealing/search/search-for-answers.js";
import { canSeal, FIXED_SOURCE, PATIENT, SOURCE, TestRoot } from "./repositories.js";

let present: TestRoot;
/** A program that leaves a mark when it is run. */
let trap: string;
let mark: string;
beforeEach(() => {
  present = new TestRoot();
  mark = path.join(present.base, "executed");
  trap = path.join(present.base, "trap");
  writeFileSync(trap, `#!/bin/sh\necho "$0 $*" >> ${mark}\ncat\n`);
  chmodSync(trap, 0o755);
});
afterEach(() => present.remove());

async function sealAndSearch() {
  const before = await searchForAnswers(present.root, present.request());
  const report = await hideHistory(present.root, present.request());
  const after = await searchForAnswers(present.root, present.request());
  return { before, report, after };
}

describe.skipIf(!canSeal)("a hostile repository", PATIENT, () => {
  test("runs nothing by its configuration, attributes, hooks or includes", async () => {
    present.commitFix();
    const gitDirectory = path.join(present.repository, ".git");
    writeFileSync(path.join(present.base, "included"), `[core]\n\tfsmonitor = ${trap}\n`);
    writeFileSync(
      path.join(gitDirectory, "config"),
      `[core]
	repositoryformatversion = 0
	fsmonitor = ${trap}
	sshCommand = ${trap}
	hooksPath = hooks
	pager = ${trap}
	editor = ${trap}
	gitProxy = ${trap}
	askPass = ${trap}
	alternateRefsCommand = ${trap}
	attributesFile = /app/.gitattributes
[include]
	path = ${present.base}/included
[filter "evil"]
	clean = ${trap}
	smudge = ${trap}
	process = ${trap}
	required = true
[diff "evil"]
	textconv = ${trap}
	command = ${trap}
[remote "origin"]
	url = ext::${trap}
	promisor = true
	uploadpack = ${trap}
[extensions]
	partialClone = origin
[gpg]
	program = ${trap}
[uploadpack]
	packObjectsHook = ${trap}
[trace2]
	eventTarget = ${mark}
`,
    );
    mkdirSync(path.join(gitDirectory, "hooks"), { recursive: true });
    for (const hook of [
      "post-index-change",
      "pre-commit",
      "post-checkout",
      "reference-transaction",
      "fsmonitor-watchman",
    ])
      symlinkSync(trap, path.join(gitDirectory, "hooks", hook));
    present.write(
      "app/.gitattributes",
      "* filter=evil diff=evil ident text eol=crlf working-tree-encoding=UTF-16\n",
    );
    writeFileSync(path.join(gitDirectory, "info/attributes"), "* filter=evil\n");
    present.write("root/.gitconfig", `[core]\n\tfsmonitor = ${trap}\n`);
    // The trap works: git as anyone would call it steps into it.
    spawnSync("git", ["-c", "safe.directory=*", "status"], { cwd: present.repository });
    expect(existsSync(mark)).toBe(true);
    rmSync(mark);
    const { before, report, after } = await sealAndSearch();
    expect(existsSync(mark)).toBe(false);
    expect(before.hits.some(({ kind }) => kind === "git-object")).toBe(true);
    expect(after).toMatchObject({ isClean: true, nGaps: 0 });
    expect(readFileSync(path.join(gitDirectory, "config"), "utf8")).not.toContain("evil");
    expect(report.state).toBe("hidden");
  });

  test("reads no objects of the host by alternates, links or replacements", async () => {
    const outside = path.join(present.base, "outside");
    mkdirSync(outside);
    present.gitIn(outside, "init", "--quiet", "--initial-branch=trunk");
    writeFileSync(path.join(outside, "names.py"), FIXED_SOURCE);
    present.gitIn(outside, "add", "--all");
    present.gitIn(outside, "commit", "--quiet", "--message", "the host's own");
    present.gitIn(outside, "repack", "-a", "-d", "-q");
    const objects = path.join(present.repository, ".git/objects");
    writeFileSync(
      path.join(objects, "info/alternates"),
      `${outside}/.git/objects\n../../../../outside/.git/objects\n`,
    );
    for (const name of readdirSync(path.join(outside, ".git/objects/pack")))
      symlinkSync(path.join(outside, ".git/objects/pack", name), path.join(objects, "pack", name));
    symlinkSync(path.join(outside, ".git/objects"), path.join(objects, "ab"));
    const { before, after } = await sealAndSearch();
    expect(before).toMatchObject({ isClean: true });
    expect(after).toMatchObject({ isClean: true });
    expect(present.gitIn(outside, "fsck", "--strict")).toBe("");
  });

  for (const [what, plant] of Object.entries({
    "a link": (target: string) => symlinkSync(target, path.join(present.repository, ".git")),
    "a file": (target: string) => writeFileSync(path.join(present.repository, ".git"), `gitdir: ${target}\n`),
    "a common directory": (target: string) => {
      mkdirSync(path.join(present.repository, ".git"));
      writeFileSync(path.join(present.repository, ".git/HEAD"), "ref: refs/heads/trunk\n");
      writeFileSync(path.join(present.repository, ".git/commondir"), `${target}\n`);
      writeFileSync(path.join(present.repository, ".git/gitdir"), "/app/.git\n");
    },
  }))
    test(`is not taken from the host through ${what} that leads out`, async () => {
      const outside = path.join(present.base, "outside.git");
      renameSync(path.join(present.repository, ".git"), outside);
      const listed = readdirSync(outside).sort();
      plant(what === "a file" ? "../../outside.git" : outside);
      const { report } = await sealAndSearch();
      expect(readdirSync(outside).sort()).toEqual(listed);
      expect(report).toMatchObject({ state: "hidden", trackedFrom: "files" });
      expect(present.git("status", "--porcelain")).toBe("");
    });

  test("moves no directory that is none of git's, whatever names it", async () => {
    present.write("usr/lib/needed/HEAD", "a file of another program");
    const gitDirectory = path.join(present.repository, ".git");
    writeFileSync(path.join(gitDirectory, "objects/info/alternates"), "/usr/lib\n/usr/lib/needed\n/app\n/\n");
    writeFileSync(path.join(gitDirectory, "commondir"), "/usr/lib\n");
    await hideHistory(present.root, present.request());
    rmSync(gitDirectory, { recursive: true });
    writeFileSync(gitDirectory, "gitdir: /usr/lib/needed\n");
    await hideHistory(present.root, present.request());
    rmSync(gitDirectory, { recursive: true });
    symlinkSync(".", gitDirectory);
    await hideHistory(present.root, present.request());
    expect(present.read("usr/lib/needed/HEAD")).toBe("a file of another program");
    expect(present.read(`app/${SOURCE}`)).toContain("normalise");
    expect(present.git("status", "--porcelain")).toBe("");
  });

  test("a workspace in its own git directory is refused", async () => {
    for (const name of ["HEAD", "objects", "refs"])
      renameSync(path.join(present.repository, ".git", name), path.join(present.repository, name));
    rmSync(path.join(present.repository, ".git"), { recursive: true });
    symlinkSync(".", path.join(present.repository, ".git"));
    await expect(hideHistory(present.root, present.request())).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SEAL",
      message: expect.stringContaining("its own git directory"),
    });
    expect(existsSync(path.join(present.repository, "objects"))).toBe(true);
  });

  test("is not recorded through links in the working tree", async () => {
    const outside = path.join(present.base, "outside");
    mkdirSync(outside);
    writeFileSync(path.join(outside, "names.py"), "SECRET_OF_THE_HOST = 1\n");
    rmSync(path.join(present.repository, "src"), { recursive: true });
    symlinkSync(outside, path.join(present.repository, "src"));
    rmSync(path.join(present.repository, "README.md"));
    symlinkSync("/etc/passwd", path.join(present.repository, "README.md"));
    await hideHistory(present.root, present.request());
    const listed = present
      .git("ls-tree", "-r", "HEAD")
      .split("\n")
      .map((line) => line.replace(/\t/, " ").split(" "))
      .map(([mode, , , name]) => `${mode} ${name}`);
    expect(listed).toEqual(["100644 .gitignore", "120000 README.md", "100644 build/kept.txt"]);
    expect(present.git("cat-file", "-p", "HEAD:README.md")).toBe("/etc/passwd");
  });

  test("a workdir that leads out of the root means a directory of the root", async () => {
    symlinkSync(present.base, path.join(present.root, "out"));
    symlinkSync("/app", path.join(present.root, "in"));
    await expect(hideHistory(present.root, present.request({ workdir: "/out" }))).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SEAL",
    });
    await expect(
      hideHistory(present.root, present.request({ workdir: "/in/../../../app/src" })),
    ).resolves.toMatchObject({ state: "hidden", repository: "app/.git" });
  });

  test("caches and leftovers that are links are not followed", async () => {
    const outside = path.join(present.base, "precious");
    mkdirSync(path.join(outside, "pip"), { recursive: true });
    writeFileSync(path.join(outside, "pip/kept"), FIXED_SOURCE);
    symlinkSync(outside, path.join(present.root, "root/.cache"));
    symlinkSync(path.join(outside, "pip/kept"), path.join(present.root, "root/.bash_history"));
    const { report } = await sealAndSearch();
    expect(readFileSync(path.join(outside, "pip/kept"), "utf8")).toBe(FIXED_SOURCE);
    expect(report.moved.map(({ path: at }) => at)).toContain("root/.bash_history");
  });

  test("an index with names that leave the tree records nothing of the host", async () => {
    const index = path.join(present.repository, ".git/index");
    const bytes = readFileSync(index);
    // The same length, so that nothing but the checksum is wrong, and git does not look at that on reading.
    const at = bytes.indexOf(SOURCE);
    expect(at).toBeGreaterThan(0);
    bytes.write("../secret/x.p", at, "latin1");
    writeFileSync(index, bytes);
    mkdirSync(path.join(present.base, "secret"));
    writeFileSync(path.join(present.root, "../secret/x.p"), "SECRET");
    await hideHistory(present.root, present.request()).then(
      () => expect(present.git("ls-tree", "-r", "--name-only", "HEAD")).not.toContain("secret"),
      (error: unknown) => expect(error).toMatchObject({ code: "MORTISE_SANDBOX_SEAL" }),
    );
  });

  test("a directory too deep for a path is refused, not passed over", async () => {
    let at = path.join(present.root, "opt");
    mkdirSync(at);
    const before = process.cwd();
    try {
      for (let depth = 0; depth < 30; depth++) {
        process.chdir(at);
        at = "d".repeat(200);
        mkdirSync(at);
      }
    } finally {
      process.chdir(before);
    }
    await expect(searchForAnswers(present.root, present.request())).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SEAL",
    });
  });
});
