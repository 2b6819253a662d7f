/**
 * A fix hidden in every place git and its users keep things: the search finds it there before, and after hiding the
 * root is clean. Needs root and git.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hideHistory } from "../../src/sealing/hide-history.js";
import { searchForAnswers } from "../../src/sealing/search/search-for-answers.js";
import { canSeal, FIXED_SOURCE, PATIENT, SOURCE, TestRoot } from "./repositories.js";

if (!canSeal) console.log("sealing tests skipped: they need Linux, root and git");

let present: TestRoot;
beforeEach(() => {
  present = new TestRoot();
});
afterEach(() => present.remove());

const PACKED = (root: TestRoot) => root.git("repack", "-a", "-d", "-q", "--keep-unreachable");

/** Each puts the fix somewhere; the working tree is the base afterwards. And what the search then says. */
const HIDING_PLACES: Record<string, readonly [found: string, hide: (root: TestRoot) => void]> = {
  "an ancestor with a tag": [
    "git-object app/.git:",
    (root) => {
      const fix = root.commitFix();
      root.git("merge", "--quiet", "--ff-only", "later");
      root.git("tag", "v2.0", fix);
      root.git("revert", "--no-edit", fix);
      root.forgetFix();
    },
  ],
  "a side branch": ["git-object app/.git:", (root) => root.commitFix()],
  "a remote-tracking reference": [
    "git-object app/.git:",
    (root) => {
      root.git("update-ref", "refs/remotes/origin/main", root.commitFix());
      root.forgetFix();
      root.expireReflogs();
    },
  ],
  "a reflog": [
    "git-object app/.git:",
    (root) => {
      root.commitFix();
      root.forgetFix();
    },
  ],
  "a stash": [
    "git-object app/.git:",
    (root) => {
      root.write(`app/${SOURCE}`, FIXED_SOURCE);
      root.git("stash", "--quiet");
    },
  ],
  "an unreachable packed object": [
    "git-object app/.git:",
    (root) => {
      root.commitFix();
      PACKED(root);
      root.forgetFix();
      root.expireReflogs();
    },
  ],
  "an unreachable loose object": [
    "git-object app/.git:",
    (root) => {
      root.commitFix();
      root.forgetFix();
      root.expireReflogs();
    },
  ],
  "a note": [
    "git-object app/.git:",
    (root) => {
      const blob = root.git("hash-object", "-w", "--", root.write("fixed.py", FIXED_SOURCE));
      rmSync(path.join(root.root, "fixed.py"));
      root.git("update-ref", "refs/notes/fixes", root.commitOfBlob(blob));
    },
  ],
  "packed references": [
    "git-object app/.git:",
    (root) => {
      root.commitFix();
      root.git("pack-refs", "--all");
    },
  ],
  "borrowed objects": [
    "git-object var/objects.git:",
    (root) => {
      root.commitFix();
      root.gitIn(root.root, "clone", "--quiet", "--bare", "app", "var/objects.git");
      rmSync(root.repository, { recursive: true });
      root.gitIn(root.root, "clone", "--quiet", "--shared", "--branch", "trunk", "var/objects.git", "app");
      // As it is inside, where the root is `/`.
      writeFileSync(path.join(root.repository, ".git/objects/info/alternates"), "/var/objects.git/objects\n");
    },
  ],
  "a submodule": [
    "git-object app/.git/modules/vendored:",
    (root) => {
      root.commitFix();
      root.gitIn(root.root, "clone", "--quiet", "app", "upstream");
      root.gitIn(path.join(root.root, "upstream"), "checkout", "--quiet", "later");
      root.gitIn(path.join(root.root, "upstream"), "checkout", "--quiet", "trunk");
      root.forgetFix();
      root.expireReflogs();
      root.git("gc", "--quiet", "--prune=now");
      root.git("submodule", "--quiet", "add", path.join(root.root, "upstream"), "vendored");
      rmSync(path.join(root.root, "upstream"), { recursive: true });
      root.commit("a submodule");
    },
  ],
  "a nested repository": [
    "git-object app/build/checkout/.git:",
    (root) => {
      root.commitFix();
      root.gitIn(root.root, "clone", "--quiet", "app", "app/build/checkout");
      root.gitIn(path.join(root.repository, "build/checkout"), "checkout", "--quiet", "trunk");
      root.forgetFix();
      root.expireReflogs();
      root.git("gc", "--quiet", "--prune=now");
    },
  ],
  "a linked worktree of another checkout": [
    "git-object srv/.git:",
    (root) => {
      root.commitFix();
      renameSync(root.repository, path.join(root.root, "srv"));
      root.gitIn(path.join(root.root, "srv"), "checkout", "--quiet", "--detach");
      root.gitIn(path.join(root.root, "srv"), "worktree", "add", "--quiet", "../app", "trunk");
      // As it is inside, where the root is `/`.
      writeFileSync(path.join(root.repository, ".git"), "gitdir: /srv/.git/worktrees/app\n");
    },
  ],
  "a git directory that `.git` only names": [
    "git-object var/names.git:",
    (root) => {
      root.commitFix();
      mkdirSync(path.join(root.root, "var"));
      renameSync(path.join(root.repository, ".git"), path.join(root.root, "var/names.git"));
      writeFileSync(path.join(root.repository, ".git"), "gitdir: ../var/names.git\n");
    },
  ],
  "a bare clone elsewhere": [
    "git-object opt/mirror.git:",
    (root) => {
      root.commitFix();
      root.gitIn(root.root, "clone", "--quiet", "--bare", "app", "opt/mirror.git");
      root.forgetFix();
      root.expireReflogs();
      root.git("gc", "--quiet", "--prune=now");
    },
  ],
  "a git directory under another name": [
    "git-object app/.git.orig:",
    (root) => {
      root.commitFix();
      renameSync(path.join(root.repository, ".git"), path.join(root.repository, ".git.orig"));
      root.git("init", "--quiet", "--initial-branch=trunk");
      root.git("add", "--force", "src", "README.md");
      root.git("commit", "--quiet", "--message", "hidden by a rename");
    },
  ],
  "a bundle": [
    "git-object var.bundle:",
    (root) => {
      root.commitFix();
      root.git("bundle", "create", "--quiet", "../var.bundle", "later");
      root.forgetFix();
      root.expireReflogs();
      root.git("gc", "--quiet", "--prune=now");
    },
  ],
  "a thin bundle": [
    "git-object var.bundle:",
    (root) => {
      root.commitFix();
      root.git("bundle", "create", "--quiet", "../var.bundle", "trunk..later");
      root.forgetFix();
      root.expireReflogs();
      root.git("gc", "--quiet", "--prune=now");
    },
  ],
  "a backup of an editor": [
    "file app/src/names.py~",
    (root) => void root.write("app/src/names.py~", FIXED_SOURCE),
  ],
  "a leftover of a merge": [
    "file app/src/names.py.orig",
    (root) => void root.write("app/src/names.py.orig", FIXED_SOURCE),
  ],
  "a swap file": [
    "file app/src/.names.py.swp",
    (root) => void root.write("app/src/.names.py.swp", `b0VIM 9.0\0\0${FIXED_SOURCE.replaceAll("\n", "\0")}`),
  ],
  "a shell history": [
    "file root/.bash_history",
    (root) => void root.write("root/.bash_history", `cat <<EOF\n${FIXED_SOURCE}EOF\n`),
  ],
  "a wheel in the cache of pip": [
    "compressed root/.cache/pip/wheels/aa/names-2.0-py3-none-any.whl!names.py",
    (root) => root.wheel("root/.cache/pip/wheels/aa/names-2.0-py3-none-any.whl"),
  ],
  "a compiled file of later sources": [
    "bytecode app/src/__pycache__/names.cpython-312.pyc",
    (root) => root.compile("app/src"),
  ],
  "metadata with the upstream commit": [
    "file usr/lib/python3/site-packages/names-1.0.dist-info/direct_url.json",
    (root) => {
      root.commitFix();
      const url = { url: "https://example.invalid/names", vcs_info: { vcs: "git", commit_id: root.fix } };
      root.write("usr/lib/python3/site-packages/names-1.0.dist-info/direct_url.json", JSON.stringify(url));
      root.forgetFix();
      root.expireReflogs();
      root.git("gc", "--quiet", "--prune=now");
    },
  ],
};

describe.skipIf(!canSeal)("history", PATIENT, () => {
  for (const [place, [found, hide]] of Object.entries(HIDING_PLACES)) {
    test(`a fix in ${place} is found before and gone after`, async () => {
      hide(present);
      const request = present.request();
      const before = await searchForAnswers(present.root, request);
      expect(before).toMatchObject({ isClean: false, nGaps: 0 });
      expect(before.hits.map(({ kind, path: at }) => `${kind} ${at}`.slice(0, found.length))).toContain(
        found,
      );

      const report = await hideHistory(present.root, request);
      const after = await searchForAnswers(present.root, request);
      expect(after.hits).toEqual([]);
      expect(after).toMatchObject({ isClean: true, nGaps: 0 });
      expect(after.probes).toEqual(before.probes);
      expect(report.moved.length).toBeGreaterThan(0);
      expect(present.git("status", "--porcelain")).toBe("");
      expect(present.git("rev-list", "--all")).toBe(report.head);
      expect(readdirSync(path.join(present.repository, ".git")).sort()).toEqual(
        ["HEAD", "config", "index", "info", "objects", "refs"].sort(),
      );
    });
  }
});
