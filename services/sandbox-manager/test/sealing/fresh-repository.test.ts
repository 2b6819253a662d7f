/**
 * What stands in the place of the history: the same commit for the same tree, clean for whoever looks from inside,
 * and every file of the image as it was. Needs root and git.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hideHistory } from "../../src/sealing/hide-history.js";
import { canSeal, FIXED_SOURCE, PATIENT, SOURCE, TestRoot } from "./repositories.js";

let present: TestRoot;
beforeEach(() => {
  present = new TestRoot();
});
afterEach(() => present.remove());

const AGENT = 1000;
const hide = () => hideHistory(present.root, present.request());
/** As an agent would call it: as its user, with nothing of ours. */
const gitAsAgent = (...argv: string[]) => {
  const done = spawnSync("git", argv, {
    cwd: present.repository,
    encoding: "utf8",
    uid: AGENT,
    gid: AGENT,
    env: { PATH: process.env.PATH, HOME: "/nonexistent" },
  });
  return `${done.stdout}${done.stderr}`;
};

describe.skipIf(!canSeal)("the commit in the place of a history", PATIENT, () => {
  test("has the tracked files, ignored ones too, and none besides", async () => {
    present.write("app/debug.log", "ignored");
    present.write("app/untracked.txt", "untracked");
    present.write("app/made/by/setup.txt", "untracked");
    const { head, nTracked } = await hide();
    expect(present.git("ls-tree", "-r", "--name-only", "HEAD").split("\n")).toEqual([
      ".gitignore",
      "README.md",
      "build/kept.txt",
      SOURCE,
    ]);
    expect(nTracked).toBe(4);
    expect(present.git("rev-parse", "HEAD")).toBe(head);
    expect(present.git("status", "--porcelain")).toBe("");
    expect(readFileSync(path.join(present.repository, "untracked.txt"), "utf8")).toBe("untracked");
    present.write("app/new.txt", "of the agent");
    expect(present.git("status", "--porcelain")).toBe("?? new.txt");
  });

  test("is the same whatever the history was, and another for another tree", async () => {
    const first = await hide();
    const other = new TestRoot();
    try {
      other.commitFix();
      for (let i = 0; i < 5; i++) other.commit(`more ${i}`);
      other.git("tag", "v1");
      utimesSync(path.join(other.repository, SOURCE), 1, 1);
      const second = await hideHistory(other.root, other.request());
      expect(second.head).toBe(first.head);
    } finally {
      other.remove();
    }
    present.write(`app/${SOURCE}`, FIXED_SOURCE);
    expect((await hide()).head).not.toBe(first.head);
  });

  test("is made again from what was made: the same", async () => {
    const first = await hide();
    expect(await hide()).toMatchObject({ head: first.head, nTracked: first.nTracked });
  });

  test("belongs to the owner of the workspace, who finds it clean and can work in it", async () => {
    chmodSync(present.base, 0o755);
    spawnSync("chown", ["-R", `${AGENT}:${AGENT}`, present.repository]);
    await hide();
    const paths = spawnSync("find", [path.join(present.repository, ".git"), "!", "-uid", String(AGENT)], {
      encoding: "utf8",
    });
    expect(paths.stdout).toBe("");
    expect(gitAsAgent("status", "--porcelain")).toBe("");
    writeFileSync(path.join(present.repository, SOURCE), "changed\n");
    expect(gitAsAgent("status", "--porcelain")).toBe(` M ${SOURCE}\n`);
    expect(gitAsAgent("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "work")).toBe("");
    expect(gitAsAgent("log", "--format=%an %s")).toBe("a work\nbase Base\n");
  });

  test("keeps modes, links and submodules, and takes no conversion from attributes", async () => {
    present.write("app/run.sh", "#!/bin/sh\n", 0o755);
    symlinkSync("run.sh", path.join(present.repository, "link"));
    present.write(
      "app/.gitattributes",
      "*.txt text eol=crlf\n*.c ident\n*.bin filter=lfs\n*.u16 working-tree-encoding=UTF-16\n",
    );
    present.write("app/dos.txt", "one\r\ntwo\r\n");
    present.write("app/unix.txt", "one\ntwo\n");
    present.write("app/id.c", "/* $Id: abc$ */\n");
    present.write("app/large.bin", "the content itself\n");
    present.write("app/wide.u16", Buffer.from("\ufeffwide\n", "utf16le"));
    present.git("add", "--force", "run.sh", "link", ".gitattributes");
    present.commit("everything");
    const commit = present.git("rev-parse", "HEAD");
    mkdirSync(path.join(present.repository, "vendored"));
    present.write("app/vendored/file.c", "int x;\n");
    present.git("update-index", "--add", "--cacheinfo", `160000,${commit},vendored`);
    await hide();
    const tree = present.git("ls-tree", "-r", "HEAD").split("\n");
    expect(tree.find((line) => line.endsWith("\trun.sh"))).toMatch(/^100755 blob/);
    expect(tree.find((line) => line.endsWith("\tlink"))).toMatch(/^120000 blob/);
    expect(tree.find((line) => line.endsWith("\tvendored"))).toBe(`160000 commit ${commit}\tvendored`);
    const recorded = spawnSync("git", ["cat-file", "-p", "HEAD:dos.txt"], {
      cwd: present.repository,
      encoding: "utf8",
    });
    expect(recorded.stdout).toBe("one\r\ntwo\r\n");
    // Nothing known from the index: everything is compared by content.
    for (const name of ["dos.txt", "unix.txt", "id.c", "large.bin", "wide.u16"])
      utimesSync(path.join(present.repository, name), 1, 1);
    expect(present.git("status", "--porcelain")).toBe("");
  });

  test("records the working tree as it is: what is gone or became something else is not in it", async () => {
    rmSync(path.join(present.repository, "README.md"));
    rmSync(path.join(present.repository, "build"), { recursive: true });
    present.write("app/build", "a file now");
    chmodSync(path.join(present.repository, SOURCE), 0o755);
    await hide();
    expect(present.git("ls-tree", "-r", "--name-only", "HEAD").split("\n")).toEqual([".gitignore", SOURCE]);
    expect(present.git("status", "--porcelain")).toBe("");
  });

  test("is made for a workdir below the top, for an empty index and a split one", async () => {
    present.git("update-index", "--split-index");
    expect((await hideHistory(present.root, present.request({ workdir: "/app/src" }))).nTracked).toBe(4);
    present.git("rm", "-r", "--quiet", "--cached", ".");
    const emptied = await hide();
    expect(emptied).toMatchObject({ state: "hidden", nTracked: 0, trackedFrom: "index" });
    expect(present.git("status", "--porcelain")).toBe("");
  });

  test("without an index, every file is recorded", async () => {
    rmSync(path.join(present.repository, ".git/index"));
    present.write("app/extra.log", "x");
    expect(await hide()).toMatchObject({ trackedFrom: "files", nTracked: 5 });
    expect(present.git("status", "--porcelain")).toBe("");
  });

  test("what was taken lies in the store, readable by its owner only", async () => {
    const fix = present.commitFix();
    const request = present.request();
    const report = await hideHistory(present.root, request);
    expect(report.moved).toContainEqual({ path: "app/.git", kind: "history" });
    expect(statSync(request.store).mode & 0o777).toBe(0o700);
    const moved = JSON.parse(readFileSync(path.join(request.store, "moved.json"), "utf8"));
    const at = moved.findIndex(({ path: taken }: { path: string }) => taken === "app/.git");
    const original = path.join(request.store, String(at).padStart(6, "0"));
    expect(present.gitIn(original, "rev-parse", "later")).toBe(fix);
  });

  test("what was moved is counted whole and listed up to a limit", async () => {
    for (let i = 0; i < 510; i++) present.write(`app/old/${i}.orig`, "");
    const request = present.request();
    const report = await hideHistory(present.root, request);
    expect(report).toMatchObject({ nMoved: 511 });
    expect(report.moved).toHaveLength(500);
    expect(JSON.parse(readFileSync(path.join(request.store, "moved.json"), "utf8"))).toHaveLength(511);
  });

  test("an unrelated repository elsewhere stays and is reported; a related one goes", async () => {
    present.gitIn(present.root, "clone", "--quiet", "--bare", "app", "srv/fork.git");
    mkdirSync(path.join(present.root, "opt/tool"), { recursive: true });
    const tool = path.join(present.root, "opt/tool");
    present.gitIn(tool, "init", "--quiet");
    writeFileSync(path.join(tool, "x"), "a tool of the image");
    present.gitIn(tool, "add", "--all");
    present.gitIn(tool, "commit", "--quiet", "--message", "tool");
    const report = await hide();
    expect(report.kept).toEqual(["opt/tool/.git"]);
    expect(report.moved).toContainEqual({ path: "srv/fork.git", kind: "related-repository" });
    expect(present.gitIn(tool, "status", "--porcelain")).toBe("");
  });

  test("a workspace in no repository is left as it is", async () => {
    rmSync(path.join(present.repository, ".git"), { recursive: true });
    expect(await hideHistory(present.root, present.request({ git: "/nonexistent/git" }))).toEqual({
      state: "none",
      nTracked: 0,
      nMoved: 0,
      moved: [],
      kept: [],
    });
    expect(existsSync(path.join(present.repository, ".git"))).toBe(false);
  });

  test("without git nothing is touched and the error says what to install", async () => {
    const failed = hideHistory(present.root, present.request({ git: "/nonexistent/git" }));
    await expect(failed).rejects.toMatchObject({
      code: "MORTISE_SANDBOX_SEAL",
      fix: expect.stringContaining("Install git"),
    });
    expect(lstatSync(path.join(present.repository, ".git")).isDirectory()).toBe(true);
  });

  for (const [what, store] of Object.entries({
    "inside the root": () => path.join(present.root, "store"),
    "around the root": () => present.base,
    "that is not empty": () => {
      const at = path.join(present.base, "full");
      mkdirSync(at);
      writeFileSync(path.join(at, "x"), "");
      return at;
    },
  }))
    test(`a store ${what} is refused`, async () => {
      await expect(hideHistory(present.root, present.request({ store: store() }))).rejects.toMatchObject({
        code: "MORTISE_SANDBOX_SEAL",
      });
    });
});

const arbitraryName = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(..."abzA09._-") },
      fc.constantFrom(" ", "\n", "\t", '"', "\\", "*", "?", "[", "#", "!", "é", "漢", "\u00ff"),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((chars) => chars.join(""))
  .filter((name) => name !== "." && name !== ".." && !/^\.git/i.test(name) && !/git~/i.test(name));

const arbitraryTree = fc.uniqueArray(
  fc.record({
    path: fc.array(arbitraryName, { minLength: 1, maxLength: 3 }),
    content: fc.oneof(fc.string(), fc.uint8Array({ maxLength: 300 }), fc.constant("a\r\nb\r\n")),
    kind: fc.constantFrom("file", "file", "executable", "symlink"),
    isTracked: fc.boolean(),
  }),
  { selector: (leaf) => leaf.path.join("/"), maxLength: 12 },
);

describe.skipIf(!canSeal)("any tree", PATIENT, () => {
  test("gives the same commit twice and a clean status", async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryTree, async (leaves) => {
        const base = mkdtempSync(path.join(tmpdir(), "mortise-trees-"));
        try {
          const heads: (string | undefined)[] = [];
          for (const side of ["one", "two"]) {
            const root = path.join(base, side);
            const top = path.join(root, "w");
            mkdirSync(top, { recursive: true });
            const git = (...argv: string[]) => spawnSync("git", argv, { cwd: top, encoding: "utf8" });
            git("init", "--quiet");
            git("read-tree", "--empty");
            const written = leaves.filter((leaf) => writeLeaf(top, leaf));
            const tracked = written.filter((leaf) => leaf.isTracked).map((leaf) => leaf.path.join("/"));
            git("--literal-pathspecs", "-c", "core.autocrlf=false", "add", "--force", "--", ...tracked);
            const { head, nTracked } = await hideHistory(root, {
              workdir: "/w",
              store: path.join(base, `store-${side}`),
              answers: {},
            });
            expect(nTracked).toBe(tracked.length);
            expect(git("status", "--porcelain").stdout).toBe("");
            heads.push(head);
          }
          expect(heads[0]).toBe(heads[1]);
          expect(heads[0]).toMatch(/^[0-9a-f]{40}$/);
        } finally {
          rmSync(base, { recursive: true });
        }
      }),
      { numRuns: 15 },
    );
  });
});

/** False where another leaf is in the way. */
function writeLeaf(
  top: string,
  { path: parts, content, kind }: { path: string[]; content: string | Uint8Array; kind: string },
): boolean {
  const at = path.join(top, ...parts);
  try {
    mkdirSync(path.dirname(at), { recursive: true });
    if (existsSync(at)) return false;
    if (kind === "symlink") symlinkSync(`to-${parts.length}`, at);
    else writeFileSync(at, content, { mode: kind === "executable" ? 0o755 : 0o644, flag: "wx" });
    return true;
  } catch {
    return false;
  }
}
