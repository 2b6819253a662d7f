#!/usr/bin/env node
/**
 * Owns the wire-compatibility check: the protobuf files against the last release, which is the last tag.
 * Without a tag nothing is promised to anyone yet; then the committed main branch stands in and it says so.
 *
 * usage: buf-breaking.mjs [--root REPOSITORY]
 */
import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { binDirectory, root as projectRoot, toolEnvironment } from "./bootstrap/paths.mjs";

const { values } = parseArgs({ options: { root: { type: "string", default: projectRoot } } });
const root = resolve(values.root);

const git = (...args) => {
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
};

/** What to compare with: a name for people and buf's input reference. */
function baseline() {
  const tag = git("describe", "--tags", "--abbrev=0");
  if (tag !== undefined) return { name: `tag ${tag}`, input: `.git#tag=${tag}` };
  if (git("rev-parse", "--verify", "--quiet", "refs/heads/main") !== undefined) {
    return { name: "branch main (no release is tagged yet)", input: ".git#branch=main" };
  }
  const head = git("rev-parse", "HEAD");
  return head === undefined
    ? undefined
    : { name: `commit ${head.slice(0, 12)} (no tag, no main branch)`, input: `.git#ref=${head}` };
}

const base = baseline();
if (base === undefined) {
  process.stderr.write(
    "protobuf compatibility: this is not a git repository, so there is nothing to compare with\n",
  );
  process.exit(1);
}
const revision = base.input.slice(base.input.indexOf("=") + 1);
if ((git("ls-tree", "-r", "--name-only", revision, "--", "proto") ?? "") === "") {
  process.stdout.write(`protobuf compatibility: ${base.name} has no protobuf files; these are the first\n`);
  process.exit(0);
}
const { status } = spawnSync(join(binDirectory, "buf"), ["breaking", "--against", base.input], {
  cwd: root,
  env: toolEnvironment(),
  stdio: "inherit",
});
process.stdout.write(`protobuf compatibility against ${base.name}: ${status === 0 ? "kept" : "broken"}\n`);
process.exitCode = status ?? 1;
