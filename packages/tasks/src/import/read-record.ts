/**
 * Owns the way from one row to a task record: what all data sets share, what each adds, and what makes a row
 * unusable. Does not read files or look at more than one row.
 *
 * R1  A task that nothing fails is solved by doing nothing: no empty fail-to-pass list.
 * R2  What is mended is said; what cannot be mended safely is refused.
 */
import { MortiseError } from "@mortise/contracts";
import { readRecord } from "@mortise/grading";
import {
  type Dataset,
  type DatasetPart,
  FAIL_TO_PASS,
  IMAGE,
  PASS_TO_PASS,
  patchOf,
  type SharedPart,
} from "./datasets/dataset.js";
import { RowFields } from "./fields.js";
import { type Patch, PatchSyntaxError } from "./patch/parse-patch.js";
import { reversePatch } from "./patch/reverse-patch.js";
import type { RowProblem, RowRepair } from "./problems.js";
import type { TaskRecord } from "./record.js";
import type { Row } from "./rows/row.js";
import { taskIdOf } from "./task-id.js";

export interface ReadOptions {
  /** Take records that are graded by an exit code alone. */
  readonly allowExitCode: boolean;
}

export type RecordReading =
  | { readonly record: TaskRecord; readonly repairs: readonly RowRepair[] }
  | { readonly problems: readonly RowProblem[] };

const COMMIT = /^[0-9a-f]{7,64}$/i;
const REPOSITORY = /^[\w.-]+\/[\w.-]+$/;
/** One word: it ends in a line of a Dockerfile, where a second line would be an instruction of its own. */
const IMAGE_REFERENCE = /^[A-Za-z0-9][\w.:/@-]*$/;

export function readTaskRecord(row: Row, dataset: Dataset, options: ReadOptions): RecordReading {
  if (dataset.respell === undefined) return readShared(row, dataset, options);
  const own = new RowFields(row);
  const columns = dataset.respell(own);
  if (own.problems.length > 0) return { problems: own.problems };
  return readShared({ ...row, fields: { ...row.fields, ...columns } }, dataset, options);
}

function readShared(row: Row, dataset: Dataset, options: ReadOptions): RecordReading {
  const fields = new RowFields(row);
  const instance = fields.required("instance_id");
  const id = taskIdOf(instance);
  if (instance !== "" && id === undefined)
    fields.refuse(
      "instance_id",
      `is no id: ${JSON.stringify(instance.slice(0, 80))}`,
      "Use printable ASCII without spaces, beginning with a letter or digit.",
    );
  const statement = fields.required("problem_statement");
  const baseCommit = baseCommitOf(fields, dataset);
  const patch = requiredPatch(fields, "patch");
  const gold = dataset.patchMakesBug ? reversed(fields, patch) : patch;
  const shared = sharedOf(fields, dataset, instance);
  const isExitCodeOnly = listsOf(fields, dataset, shared, options);
  const part = dataset.read(fields, shared);
  checkPlace(fields, part);
  const repository = part.repository ?? repositoryOf(fields, shared.repo);
  const createdAt = createdAtOf(fields);
  const difficulty = fields.text("difficulty");
  const parser = isExitCodeOnly ? undefined : parserOf(fields, part.parser);
  if (fields.problems.length > 0 || gold === undefined || id === undefined)
    return { problems: fields.problems };
  const record: TaskRecord = {
    dataset: dataset.name,
    id,
    instance,
    repository,
    language: part.language,
    ...(baseCommit === undefined ? {} : { baseCommit }),
    ...(shared.version === undefined ? {} : { version: shared.version }),
    ...(createdAt === undefined ? {} : { createdAt }),
    ...(difficulty === undefined ? {} : { difficulty }),
    statement: part.statement ?? statement,
    gold,
    ...(dataset.patchMakesBug && patch !== undefined ? { bug: patch } : {}),
    ...(shared.tests === undefined ? {} : { tests: shared.tests }),
    failToPass: shared.failToPass,
    passToPass: shared.passToPass,
    ...(part.image === undefined ? {} : { image: part.image }),
    ...(part.dockerfile === undefined ? {} : { dockerfile: part.dockerfile }),
    ...(part.workdir === undefined ? {} : { workdir: part.workdir }),
    ...(parser === undefined ? {} : { parser }),
    evaluation: part.evaluation,
    isExitCodeOnly,
    fields: {
      ...row.fields,
      ...fields.mended,
      // What the data set implies and the row does not say: the record in tests/ is graded by itself.
      ...(fields.find("log_parser") === undefined && parser !== undefined ? { log_parser: parser } : {}),
    },
  };
  return { record, repairs: fields.repairs };
}

function sharedOf(fields: RowFields, dataset: Dataset, instance: string): SharedPart {
  const failToPass = fields.tests(FAIL_TO_PASS);
  const failing = new Set(failToPass);
  const all = fields.tests(PASS_TO_PASS);
  const passToPass = all.filter((name) => !failing.has(name));
  if (passToPass.length < all.length)
    fields.repair(
      "PASS_TO_PASS",
      `has ${all.length - passToPass.length} tests of FAIL_TO_PASS, which decides`,
    );
  return {
    instance,
    repo: fields.required("repo"),
    version: fields.text("version"),
    tests: dataset.hasTestPatch ? requiredPatch(fields, "test_patch") : undefined,
    failToPass,
    passToPass,
  };
}

/** Whether the task can only be graded by an exit code (R1). */
function listsOf(fields: RowFields, dataset: Dataset, shared: SharedPart, options: ReadOptions): boolean {
  if (shared.failToPass.length > 0) return false;
  if (fields.problems.some(({ field }) => (FAIL_TO_PASS as readonly string[]).includes(field))) return false;
  const isScored = shared.passToPass.length > 0;
  if (dataset.name === "openswe" && !isScored) {
    if (options.allowExitCode) return true;
    fields.refuse(
      "FAIL_TO_PASS",
      "is absent: graded by an exit code alone, which one line of the graded code can forge",
      "Take a copy with lists of tests, or pass --allow-exit-code.",
    );
    return false;
  }
  fields.refuse(
    "FAIL_TO_PASS",
    isScored
      ? "is empty: doing nothing would resolve it"
      : "and PASS_TO_PASS are empty: nothing would be tested",
    "Give the tests that fail before the repair and pass after it.",
  );
  return false;
}

/** The name of the parser that reads the log: the one that is named, else the one of the repository. */
function parserOf(fields: RowFields, named: string | undefined): string | undefined {
  try {
    const options = named === undefined ? {} : { parser: named };
    return readRecord({ ...fields.row.fields, ...fields.mended }, fields.row.place, options).parser.name;
  } catch (error) {
    if (!(error instanceof MortiseError)) throw error;
    if (fields.problems.length === 0) refuseUngraded(fields, error, named);
    return undefined;
  }
}

/** In the words of this module where the parser is the matter, in the grader's where a field of the record is. */
function refuseUngraded(fields: RowFields, error: MortiseError, named: string | undefined): void {
  const field = String(error.detail.field);
  const what = error.message.split(`${fields.row.place}: ${field} `)[1]?.replace(/\.$/, "");
  if (["parser", "log_parser", "repo"].includes(field) || what === undefined)
    fields.refuse("log_parser", parserProblem(named, fields.text("repo")), error.fix);
  else fields.refuse(field, what, error.fix);
}

function parserProblem(named: string | undefined, repo: string | undefined): string {
  return named === undefined
    ? `is absent, and no parser is known for ${repo}`
    : `names no parser: ${JSON.stringify(named)}`;
}

function requiredPatch(fields: RowFields, name: string): Patch | undefined {
  fields.required(name);
  return patchOf(fields, name);
}

function reversed(fields: RowFields, patch: Patch | undefined): Patch | undefined {
  if (patch === undefined) return undefined;
  try {
    return reversePatch(patch);
  } catch (error) {
    if (!(error instanceof PatchSyntaxError)) throw error;
    fields.refuse("patch", error.message, "Leave the record out.");
    return undefined;
  }
}

function baseCommitOf(fields: RowFields, dataset: Dataset): string | undefined {
  const commit = dataset.hasBaseCommit ? fields.required("base_commit") : fields.text("base_commit");
  if (commit === undefined || commit === "" || COMMIT.test(commit)) return commit || undefined;
  fields.refuse(
    "base_commit",
    `is no commit: ${JSON.stringify(commit.slice(0, 80))}`,
    "Give its hexadecimal digits.",
  );
  return undefined;
}

function repositoryOf(fields: RowFields, repo: string): string {
  if (repo !== "" && !REPOSITORY.test(repo))
    fields.refuse("repo", `is no repository: ${JSON.stringify(repo.slice(0, 80))}`, "Write owner/name.");
  return repo;
}

function checkPlace(fields: RowFields, part: DatasetPart): void {
  const { name, value } = fields.find(IMAGE) ?? { name: "image", value: part.image };
  if (typeof value === "string" && !IMAGE_REFERENCE.test(value))
    fields.refuse(
      name,
      `is no image: ${JSON.stringify(value.slice(0, 80))}`,
      "Write registry/name:tag or registry/name@digest.",
    );
  const { workdir } = part;
  if (workdir !== undefined && !workdir.startsWith("/"))
    fields.refuse(
      "workdir",
      `is no absolute path: ${JSON.stringify(workdir.slice(0, 80))}`,
      "Give the directory of the repository in the image, from / on.",
    );
}

/** ISO 8601, from text or from seconds or milliseconds since 1970. */
function createdAtOf(fields: RowFields): string | undefined {
  const value = fields.find("created_at")?.value;
  if (value === undefined) return undefined;
  const date =
    typeof value === "number"
      ? new Date(value < 1e11 ? value * 1000 : value)
      : new Date(/[zZ]|[+-]\d\d:?\d\d$/.test(String(value)) ? String(value) : `${value}Z`);
  if (!Number.isNaN(date.getTime())) return date.toISOString();
  fields.repair("created_at", "is no date and was left out");
  return undefined;
}
