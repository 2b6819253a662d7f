/**
 * Owns telling whether a git directory of an image shares history with the workspace's: whether it has one of certain
 * commits among its objects, reachable or not. Does not search contents.
 */
import { mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { joined } from "../byte-path.js";
import type { RootDirectory } from "../root-directory.js";
import type { HostGit } from "./host-git.js";
import { objectDirectories } from "./repository.js";
import { linkObjects, makeRepository, objectFormatOf } from "./scratch-repository.js";

/** @param commits full ids in lower-case hex */
export async function sharesHistory(
  git: HostGit,
  root: RootDirectory,
  gitDirectory: string,
  commits: readonly string[],
  scratch: string,
): Promise<boolean> {
  if (commits.length === 0) return false;
  const base = mkdtempSync(path.join(scratch, "kin-"));
  try {
    const repository = path.join(base, "git");
    linkRepository(root, gitDirectory, repository);
    const argv = ["cat-file", "--batch-check=%(objectname)"];
    const input = Buffer.from(`${commits.join("\n")}\n`);
    const answer = (await git.run({ gitDirectory: repository, argv, input })).toString("latin1");
    return answer.split("\n").some((line) => line !== "" && !line.endsWith(" missing"));
  } finally {
    rmSync(base, { recursive: true });
  }
}

/** A repository made here that has the objects of a git directory of the image, borrowed ones included. */
export function linkRepository(root: RootDirectory, gitDirectory: string, repository: string): void {
  const config = root.text(joined(gitDirectory, "config")) ?? "";
  makeRepository(repository, objectFormatOf(config));
  linkObjects(root, objectDirectories(root, gitDirectory), repository);
}
