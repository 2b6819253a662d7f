/**
 * Owns the base files of a task as they are in a root: what probes are told apart from. Does not choose probes.
 *
 * They are the tracked files. A file that only lies in the working tree is no part of the sources: what it holds may
 * be the answer. Without an index to tell, they are the files the patches change.
 */
import { closeSync } from "node:fs";
import { byteString, isWithin, joined } from "../byte-path.js";
import { HostGit } from "../git/host-git.js";
import { findRepository, type Repository } from "../git/repository.js";
import { trackedFiles } from "../git/tracked-files.js";
import type { RootDirectory } from "../root-directory.js";
import { sealFailed } from "../seal-errors.js";
import { FileScan } from "../search/file-scan.js";
import type { Matcher } from "../search/matcher.js";
import type { SealRequest } from "../types.js";
import type { Base } from "./probes.js";
import { parseUnifiedDiff } from "./unified-diff.js";

const MAX_PATCHED_FILE_BYTES = 64 * 1024 * 1024;

export async function baseFiles(
  root: RootDirectory,
  { workdir, answers, git }: Pick<SealRequest, "workdir" | "answers" | "git">,
  scratch: string,
): Promise<Base> {
  const directory = root.locate(byteString(workdir));
  if (directory === undefined || !root.isDirectory(directory))
    throw sealFailed(`workdir ${JSON.stringify(workdir)} is no directory of the root`);
  const repository = findRepository(root, directory);
  const top = repository?.top ?? directory;
  const located = (patched: string) => {
    const at = root.locate(joined(top, byteString(patched)));
    return at !== undefined && isWithin(at, top) && root.stat(at)?.isFile() ? at : undefined;
  };
  const patched = [answers.goldPatch, answers.testPatch].flatMap((patch) => parseUnifiedDiff(patch ?? ""));
  const files =
    (repository && (await indexedFiles(root, repository, git, scratch))) ??
    new Set(patched.flatMap(({ path }) => located(path) ?? []));
  return {
    scan: (matcher) => scanFiles(root, files, matcher),
    read: (path) => {
      const at = located(path);
      const text = at === undefined ? undefined : root.text(at, MAX_PATCHED_FILE_BYTES);
      return text === undefined ? undefined : Buffer.from(text, "latin1").toString("utf8");
    },
  };
}

async function indexedFiles(
  root: RootDirectory,
  repository: Repository,
  git: string | undefined,
  scratch: string,
): Promise<Set<string> | undefined> {
  const tracked = await trackedFiles(await HostGit.find(git), root, repository, scratch);
  if (tracked.from !== "index") return undefined;
  const plain = tracked.leaves.filter(({ mode }) => mode.startsWith("100"));
  return new Set(plain.map((leaf) => joined(repository.top, leaf.path)));
}

function scanFiles(root: RootDirectory, files: Iterable<string>, matcher: Matcher): ReadonlySet<string> {
  const found = new Set<string>();
  const scan = new FileScan(matcher);
  for (const at of files) {
    const file = root.open(at);
    if (file === undefined) continue;
    try {
      scan.scan(file.fd, file.stat, (id) => found.add(id));
    } finally {
      closeSync(file.fd);
    }
  }
  return found;
}
