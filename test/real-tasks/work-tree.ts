/**
 * Owns a project's work tree as an image holds it: a repository at the base release, whose history goes on to the
 * repaired one as upstream's does; and the two patches between them. Does not build images.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RealProject } from "./projects.js";
import { unpackRelease } from "./releases.js";

/** The branch of the later commit, as clones of upstream have them. */
export const LATER_BRANCH = "release";

export interface WorkTree {
  readonly directory: string;
  /** The checked-out commit. */
  readonly baseCommit: string;
  readonly gold: string;
  readonly testPatch: string;
}

/** Makes the repository at `directory`, which is made too. Equal releases give equal commits. */
export function makeWorkTree(project: RealProject, directory: string): WorkTree {
  const { base, repaired, gold, tests, createdAt } = project;
  mkdirSync(directory, { recursive: true });
  const git = (args: readonly string[], input = "") =>
    execFileSync("git", args, {
      cwd: directory,
      encoding: "utf8",
      input,
      env: { PATH: process.env.PATH, ...identityAt(createdAt) },
    });
  git(["init", "--quiet", "--initial-branch=main"]);
  unpackRelease(base, directory);
  const commit = (version: string) => {
    git(["add", "--all", "--force"]);
    git(["commit", "--quiet", "--message", `Release ${version}`]);
    return git(["rev-parse", "HEAD"]).trim();
  };
  const baseCommit = commit(base.version);
  git(["checkout", "--quiet", "-b", LATER_BRANCH]);
  for (const name of readdirSync(directory).filter((each) => each !== ".git"))
    rmSync(join(directory, name), { recursive: true });
  unpackRelease(repaired, directory);
  const later = commit(repaired.version);
  git(["checkout", "--quiet", "main"]);
  const between = (paths: readonly string[]) => git(["diff", baseCommit, later, "--", ...paths]);
  const chosen = chosenHunks(between([gold.file]), gold);
  // Taken anew from the tree with the chosen hunks: their places are right without the others.
  git(["apply", "--recount", "-"], chosen);
  const goldPatch = git(["diff"]);
  git(["checkout", "--quiet", "."]);
  return { directory, baseCommit, gold: goldPatch, testPatch: between(tests) };
}

/** Throws when nothing is left: the releases are not those the project was written for. */
function chosenHunks(diff: string, { file, only, not }: RealProject["gold"]): string {
  const [header = "", ...hunks] = diff.split(/^(?=@@ )/m);
  const chosen = hunks.filter(
    (hunk) => (only === undefined || hunk.includes(only)) && (not === undefined || !hunk.includes(not)),
  );
  if (chosen.length === 0) throw new Error(`no change of ${file} is the repair`);
  return [header, ...chosen].join("");
}

function identityAt(day: string): Record<string, string> {
  const date = `${day}T00:00:00Z`;
  const own = ["AUTHOR", "COMMITTER"].flatMap((who) => [
    [`GIT_${who}_NAME`, "maintainers"],
    [`GIT_${who}_EMAIL`, "maintainers@localhost"],
    [`GIT_${who}_DATE`, date],
  ]);
  return { ...Object.fromEntries(own), GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
}
