/**
 * Owns the proof that a set of tasks and an evaluation set have nothing in common: no repository, no instance, no
 * state of a repository. Fails closed: a task that does not say its repository proves nothing.
 */
import { createHash } from "node:crypto";
import { MortiseError } from "@mortise/contracts";
import { projectOf } from "../import/datasets/swe-smith.js";
import { openRows } from "../import/rows/open-rows.js";
import { isObject } from "../import/rows/row.js";
import { indexFile } from "./index-files.js";
import { joinedRow } from "./index-parquet.js";
import { fromIndexRow, type IndexedTask } from "./indexed-task.js";

/** What is compared of a task. */
export interface Identity {
  readonly instance: string;
  readonly repository?: string;
  readonly baseCommit?: string;
}

export type DisjointLevel = "repository" | "instance";

export interface DisjointProof {
  readonly against: string;
  readonly level: DisjointLevel;
  readonly tasks: number;
  readonly otherTasks: number;
  readonly repositories: number;
  readonly otherRepositories: number;
  /** SHA-256 over the sorted identities of each side: what exactly was compared. */
  readonly digest: string;
  readonly otherDigest: string;
  /** Projects of one name and different owners, which may be forks: to be looked at. */
  readonly sameNames: readonly string[];
}

const SHOWN_NAMES = 10;

/**
 * The identities of an index or of a data set's own rows: JSON, JSONL or parquet.
 * Throws MORTISE_TASK_RECORD for a row with neither `extra_info` nor `instance_id`.
 */
export async function readIdentities(path: string): Promise<Identity[]> {
  const identities: Identity[] = [];
  for await (const { place, fields } of (await openRows(indexFile(path))).rows()) {
    const row = joinedRow(fields);
    if (isObject(row.extra_info) || typeof row.instance_id !== "string")
      identities.push(fromIndexRow(row, place));
    else
      identities.push({
        instance: row.instance_id,
        ...(typeof row.repo === "string" ? { repository: projectOf(row.repo) } : {}),
        ...(typeof row.base_commit === "string" ? { baseCommit: row.base_commit } : {}),
      });
  }
  return identities;
}

/** What to leave out for `proveDisjoint` to succeed, lower case: instances and, at that level, repositories. */
export function namesToExclude(others: readonly Identity[], level: DisjointLevel): Set<string> {
  const instances = namesOf(others, instanceOf);
  return level === "instance" ? instances : new Set([...instances, ...namesOf(others, repositoryOf)]);
}

/** Throws MORTISE_TASK_OVERLAP naming what both have, or what cannot be told. */
export function proveDisjoint(
  tasks: readonly IndexedTask[],
  others: readonly Identity[],
  against: string,
  level: DisjointLevel,
): DisjointProof {
  if (others.length === 0)
    throw refused(against, "it holds no tasks, so nothing is proven", "Name the evaluation set.");
  const repositories = namesOf(tasks, repositoryOf);
  const otherRepositories = namesOf(others, repositoryOf);
  refuseCommon(against, "instances", namesOf(tasks, instanceOf), namesOf(others, instanceOf));
  refuseCommon(against, "states of repositories", namesOf(tasks, stateOf), namesOf(others, stateOf));
  if (level === "repository") {
    refuseUnknown(against, tasks, "tasks");
    refuseUnknown(against, others, "tasks of it");
    refuseCommon(against, "repositories", repositories, otherRepositories);
  }
  const otherProjects = new Map([...otherRepositories].map((name) => [projectName(name), name]));
  return {
    against,
    level,
    tasks: tasks.length,
    otherTasks: others.length,
    repositories: repositories.size,
    otherRepositories: otherRepositories.size,
    digest: digestOf(tasks),
    otherDigest: digestOf(others),
    sameNames: [...repositories].flatMap((name) => {
      const other = otherProjects.get(projectName(name));
      return other === undefined || other === name ? [] : [`${name} and ${other}`];
    }),
  };
}

const repositoryOf = ({ repository }: Identity) => repository?.toLowerCase();
const instanceOf = ({ instance }: Identity) => instance.toLowerCase();
/** Two data sets may name one commit of one repository by two instances. */
const stateOf = ({ repository, baseCommit }: Identity) =>
  repository === undefined || baseCommit === undefined
    ? undefined
    : `${repository}@${baseCommit}`.toLowerCase();

function projectName(repository: string): string {
  return repository.slice(repository.indexOf("/") + 1);
}

function namesOf(
  identities: readonly Identity[],
  of: (identity: Identity) => string | undefined,
): Set<string> {
  return new Set(identities.map(of).filter((name) => name !== undefined));
}

function refuseCommon(
  against: string,
  kind: string,
  own: ReadonlySet<string>,
  others: ReadonlySet<string>,
): void {
  const common = [...own].filter((name) => others.has(name)).sort();
  if (common.length === 0) return;
  const more = common.length - SHOWN_NAMES;
  const names = `${common.slice(0, SHOWN_NAMES).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  const fix =
    kind === "repositories"
      ? "Leave them out with --exclude-set, or ask for --disjoint-level instance if that is enough."
      : "Leave them out with --exclude-set or --exclude.";
  throw refused(against, `${common.length} ${kind} are in both: ${names}`, fix);
}

function refuseUnknown(against: string, identities: readonly Identity[], whose: string): void {
  const unknown = identities.filter(({ repository }) => repository === undefined);
  if (unknown.length === 0) return;
  throw refused(
    against,
    `${unknown.length} ${whose} do not say their repository, first ${unknown[0]!.instance}`,
    "Add extra_info.repo to these rows.",
  );
}

function refused(against: string, what: string, fix: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_OVERLAP",
    message: `${against}: ${what}.`,
    fix,
    detail: { source: against },
  });
}

function digestOf(identities: readonly Identity[]): string {
  const lines = identities.map(
    (of) => `${instanceOf(of)}\0${repositoryOf(of) ?? ""}\0${of.baseCommit ?? ""}\n`,
  );
  return createHash("sha256").update(lines.sort().join("")).digest("hex");
}
