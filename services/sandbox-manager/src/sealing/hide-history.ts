/**
 * Owns taking the past of a workspace out of a root filesystem: its repository and every other that shares history
 * with it, whatever is left over from other states of the sources, and the one commit put in their place.
 * Does not prove anything (see search.ts) and does not restore: grading starts from the pristine image.
 *
 * It blocks its thread while it walks and moves; `sealRoot` gives it a thread of its own.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { byteString, isWithin, joined, nameOf, parentOf, shownPath } from "./byte-path.js";
import { BRANCH, makeFreshRepository } from "./git/fresh-repository.js";
import { HostGit } from "./git/host-git.js";
import { sharesHistory } from "./git/kinship.js";
import { findRepository, gitDirectoryOf, isGitDirectory, type Repository } from "./git/repository.js";
import { type TrackedFiles, trackedFiles } from "./git/tracked-files.js";
import { HistoryStore } from "./history-store.js";
import { type Leftover, leftoversOf, type WorkspaceFiles } from "./leftovers.js";
import { touchedModules } from "./probes/unified-diff.js";
import { RootDirectory } from "./root-directory.js";
import { sealFailed } from "./seal-errors.js";
import type { HistoryReport, SealRequest } from "./types.js";

/**
 * @param directory the root filesystem on the host; nothing may run in it
 * @throws MORTISE_SANDBOX_SEAL; the root is then half changed and must be removed
 */
export async function hideHistory(directory: string, request: SealRequest): Promise<HistoryReport> {
  const root = new RootDirectory(directory);
  const scratch = mkdtempSync(path.join(request.scratch ?? tmpdir(), "mortise-seal-"));
  try {
    const workdir = root.locate(byteString(request.workdir));
    if (workdir === undefined || !root.isDirectory(workdir))
      throw sealFailed(`workdir ${JSON.stringify(request.workdir)} is no directory of the root`);
    const store = new HistoryStore(root, request.store);
    return await hide(root, workdir, request, store, scratch);
  } finally {
    root.close();
    rmSync(scratch, { recursive: true });
  }
}

async function hide(
  root: RootDirectory,
  workdir: string,
  request: SealRequest,
  store: HistoryStore,
  scratch: string,
): Promise<HistoryReport> {
  const repository = findRepository(root, workdir);
  let git: HostGit | undefined;
  const needGit = async () => {
    git ??= await HostGit.find(request.git);
    return git;
  };
  const tracked: TrackedFiles | undefined =
    repository && (await trackedFiles(await needGit(), root, repository, scratch));
  const survey = look(root, workspaceFiles(request, workdir, repository, tracked));

  for (const place of repository?.places ?? []) {
    if (isWithin(repository!.top, place))
      throw sealFailed(`the workspace lies in its own git directory, ${shownPath(place)}`);
    store.take(place, "history");
  }
  for (const { path: at, kind } of survey.leftovers) store.take(at, kind);
  const kept: string[] = [];
  for (const at of survey.gitDirectories.filter((found) => root.stat(found) !== undefined)) {
    if (isWithin(at, repository?.top ?? workdir)) store.take(at, "nested-repository");
    else if (await sharesHistory(await needGit(), root, at, commitsOf(request, repository), scratch))
      store.take(at, "related-repository");
    else kept.push(shownPath(at));
  }
  // What led to a git directory that is gone, or would be found to be a repository by git inside.
  for (const at of survey.dotGitFiles)
    if (isWithin(at, repository?.top ?? workdir) || gitDirectoryOf(root, at) === undefined)
      store.take(at, "worktree-link");

  if (repository === undefined || tracked === undefined)
    return { state: "none", nTracked: 0, ...store.finish(), kept };
  const { top } = repository;
  const head = await makeFreshRepository(await needGit(), root, top, tracked.leaves, scratch);
  if (root.text(joined(top, `.git/${BRANCH}`))?.trim() !== head)
    throw sealFailed("the new repository is not where it was put");
  return {
    state: "hidden",
    repository: shownPath(joined(top, ".git")),
    head,
    trackedFrom: tracked.from,
    nTracked: tracked.leaves.length,
    ...store.finish(),
    kept,
  };
}

interface Survey {
  readonly leftovers: readonly Leftover[];
  /** Directories; the outer one of two nested. */
  readonly gitDirectories: readonly string[];
  /** `.git` that is a file or a link. */
  readonly dotGitFiles: readonly string[];
}

/** Everything in the root that may have to go, found in one walk before anything goes. */
function look(root: RootDirectory, workspace: WorkspaceFiles): Survey {
  const leftovers: Leftover[] = [];
  const gitDirectories: string[] = [];
  const dotGitFiles: string[] = [];
  const isOutside = (at: string) =>
    gitDirectories.at(-1) === undefined || !isWithin(at, gitDirectories.at(-1)!);
  for (const listing of root.walk("", undefined, isOutside)) {
    if (listing.path !== "" && (nameOf(listing.path) === ".git" || isGitDirectory(listing))) {
      gitDirectories.push(listing.path);
      continue;
    }
    leftovers.push(...leftoversOf(root, listing, workspace));
    for (const { name, path: at, kind } of listing.entries)
      if (name === ".git" && kind !== "directory") dotGitFiles.push(at);
  }
  return { leftovers, gitDirectories, dotGitFiles };
}

function workspaceFiles(
  request: SealRequest,
  workdir: string,
  repository: Repository | undefined,
  tracked: TrackedFiles | undefined,
): WorkspaceFiles {
  const top = repository?.top ?? workdir;
  // Without an index nobody says which files belong to the sources, and none is taken for a leftover by its name.
  const names = new Set<string>();
  for (const leaf of tracked?.leaves ?? []) {
    for (let at = joined(top, leaf.path); at !== top && !names.has(at); at = parentOf(at)) names.add(at);
  }
  return { top, isTracked: (at) => names.has(at), touched: touchedModules(request.answers) };
}

function commitsOf({ answers }: SealRequest, repository: Repository | undefined): string[] {
  return [...(answers.laterCommits ?? []), ...(repository?.head === undefined ? [] : [repository.head])];
}
