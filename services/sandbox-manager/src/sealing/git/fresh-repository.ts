/**
 * Owns the repository that takes the place of an image's history: one commit of the files as they are, made of data
 * that is the same on every host and day, so that equal trees have equal ids. Does not decide which files.
 *
 * Contents are recorded byte for byte: `info/attributes` switches off every conversion and filter, or what `git
 * status` says inside would depend on attributes and programs of the image. Untracked files of the image that it does
 * not ignore are listed in `info/exclude`, so that the agent begins with a clean status.
 */
import {
  closeSync,
  lchownSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { bytesOf, joined } from "../byte-path.js";
import { copyTree } from "../history-store.js";
import type { RootDirectory } from "../root-directory.js";
import { sealFailed } from "../seal-errors.js";
import type { HostGit } from "./host-git.js";
import { makeRepository } from "./scratch-repository.js";
import type { Leaf } from "./tracked-files.js";

export const BRANCH = "refs/heads/main";
const IDENTITY = "base <base@localhost> 946684800 +0000";
const MESSAGE = "Base\n";
const CHUNK_BYTES = 1024 * 1024;
/** Speed over size: the pack lives as long as a template. */
const COMPRESSION = [
  "-c",
  "core.compression=1",
  "-c",
  "pack.compression=1",
  "-c",
  "fastimport.unpackLimit=1",
];
const ATTRIBUTES = "* -text -ident -filter !working-tree-encoding\n";
const KEPT = ["HEAD", "config", "index", "info", "objects", "refs"];

/**
 * Makes `.git` in the working tree, owned as the working tree is. Nothing of that name may be there.
 * @returns id of the commit
 * @throws MORTISE_SANDBOX_SEAL when the result is not one commit with a clean status
 */
export async function makeFreshRepository(
  git: HostGit,
  root: RootDirectory,
  top: string,
  leaves: readonly Leaf[],
  scratch: string,
): Promise<string> {
  const base = mkdtempSync(path.join(scratch, "fresh-"));
  try {
    const directory = path.join(base, "git");
    // The name of the working tree may be bytes no argument can carry.
    const workTree = path.join(base, "tree");
    symlinkSync(root.host(top), workTree);
    makeRepository(directory);
    writeFileSync(path.join(directory, "info/attributes"), ATTRIBUTES);
    const at = { gitDirectory: directory, workTree };
    const argv = [...COMPRESSION, "fast-import", "--quiet", "--done", "--date-format=raw"];
    await git.run({ ...at, argv, input: importStream(root, top, leaves) });
    await git.run({ ...at, argv: ["read-tree", BRANCH] });
    await git.run({ ...at, argv: ["update-index", "-q", "--refresh"] });
    const others = ["ls-files", "--others", "--directory", "--exclude-standard", "-z"];
    const untracked = (await git.run({ ...at, argv: others })).toString("latin1");
    writeFileSync(path.join(directory, "info/exclude"), bytesOf(excludeFile(untracked)));
    const head = await verify(git, at);
    place(root, top, directory);
    return head;
  } finally {
    rmSync(base, { recursive: true });
  }
}

/** What `git fast-import` reads. Chunks may share memory with the ones before. */
async function* importStream(
  root: RootDirectory,
  top: string,
  leaves: readonly Leaf[],
): AsyncGenerator<Uint8Array> {
  yield bytesOf(
    `commit ${BRANCH}\nauthor ${IDENTITY}\ncommitter ${IDENTITY}\ndata ${MESSAGE.length}\n${MESSAGE}`,
  );
  for (const { path: name, mode, commit } of leaves) {
    if (commit !== undefined) {
      yield bytesOf(`M ${mode} ${commit} ${quoted(name)}\n`);
      continue;
    }
    yield bytesOf(`M ${mode} inline ${quoted(name)}\n`);
    const at = joined(top, name);
    if (mode === "120000") {
      const target = readlinkSync(root.host(at), "buffer");
      yield bytesOf(`data ${target.byteLength}\n`);
      yield target;
    } else yield* fileContent(root, at);
    yield bytesOf("\n");
  }
  yield bytesOf("done\n");
}

async function* fileContent(root: RootDirectory, at: string): AsyncGenerator<Uint8Array> {
  const file = root.open(at);
  if (file === undefined) throw sealFailed(`${at} is no longer a file`);
  try {
    yield bytesOf(`data ${file.stat.size}\n`);
    let left = file.stat.size;
    while (left > 0) {
      const chunk = Buffer.allocUnsafe(Math.min(left, CHUNK_BYTES));
      const n = readSync(file.fd, chunk, 0, chunk.byteLength, null);
      if (n === 0) throw sealFailed(`${at} became shorter while it was read`);
      left -= n;
      yield chunk.subarray(0, n);
    }
  } finally {
    closeSync(file.fd);
  }
}

/** As git quotes names in C's manner: every byte that is not plain ASCII in octal. */
function quoted(name: string): string {
  const escaped = name.replace(
    /[^\x20-\x7e]|["\\]/g,
    (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`,
  );
  return `"${escaped}"`;
}

/** One pattern a name, anchored, for exactly this name. @param names separated by NUL; directories end with a slash */
function excludeFile(names: string): string {
  const patterns = names
    .split("\0")
    .filter((name) => name !== "")
    // A line cannot hold a line break; any one character there is the nearest that can be said.
    .map((name) => `/${name.replace(/[\\*?[\] \t!#]/g, "\\$&").replaceAll("\n", "?")}`);
  return `${patterns.join("\n")}\n`;
}

async function verify(git: HostGit, at: { gitDirectory: string; workTree: string }): Promise<string> {
  const ask = async (...argv: string[]) => (await git.run({ ...at, argv })).toString("latin1");
  const status = await ask("status", "--porcelain", "-z", "--ignore-submodules=dirty");
  if (status !== "") throw sealFailed(`the status is not clean: ${JSON.stringify(status.slice(0, 500))}`);
  const commits = (await ask("rev-list", "--all")).trim().split("\n");
  if (commits.length !== 1) throw sealFailed(`there are ${commits.length} commits instead of one`);
  const objects = (await ask("cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
    .trim()
    .split("\n");
  const reachable = new Set(
    (await ask("rev-list", "--objects", "--no-object-names", "--all")).trim().split("\n"),
  );
  if (objects.some((object) => !reachable.has(object)))
    throw sealFailed("there are objects outside the commit");
  return commits[0]!;
}

function place(root: RootDirectory, top: string, directory: string): void {
  for (const name of readdirSync(directory))
    if (!KEPT.includes(name)) rmSync(path.join(directory, name), { recursive: true });
  const owner = root.stat(top)!;
  own(directory, owner.uid, owner.gid);
  copyTree(Buffer.from(directory), root.host(joined(top, ".git")));
}

function own(at: string, uid: number, gid: number): void {
  lchownSync(at, uid, gid);
  for (const entry of readdirSync(at, { withFileTypes: true })) {
    const below = path.join(at, entry.name);
    if (entry.isDirectory()) own(below, uid, gid);
    else lchownSync(below, uid, gid);
  }
}
