/**
 * Owns what a data set has to say to be imported, and what all of them share. To add one, write a file beside
 * swe-bench.ts and list it in detect.ts.
 */
import type { RowFields } from "../fields.js";
import { type MendedPatch, mendPatch } from "../patch/mend-patch.js";
import { type Patch, PatchSyntaxError } from "../patch/parse-patch.js";
import type { DatasetName, Evaluation } from "../record.js";

/** What a data set says of a row beyond the fields all have (`readRecord`). */
export interface DatasetPart {
  readonly language: string;
  readonly image?: string;
  readonly dockerfile?: string;
  readonly workdir?: string;
  readonly parser?: string;
  readonly evaluation: Evaluation;
  /** What the agent is told, where it is more than `problem_statement`. */
  readonly statement?: string;
  /** Where the project of a mirror is named otherwise than by `repo`. */
  readonly repository?: string;
}

export interface SharedPart {
  readonly instance: string;
  readonly repo: string;
  readonly version: string | undefined;
  readonly tests: Patch | undefined;
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
}

export interface Dataset {
  readonly name: DatasetName;
  readonly title: string;
  /** Columns that are read or known to carry nothing a task needs, beside SHARED_COLUMNS. */
  readonly columns: readonly string[];
  /** Whether rows have a test patch; SWE-smith's tests are in the image. */
  readonly hasTestPatch: boolean;
  readonly hasBaseCommit: boolean;
  /** Whether `patch` makes the bug instead of repairing it. */
  readonly patchMakesBug: boolean;
  /** Whether a row with these fields is of this data set; the first that says so is taken. */
  recognises(fields: Readonly<Record<string, unknown>>): boolean;
  /**
   * The shared columns of a row that has others in their place. It refuses in the row's own names; what it leaves
   * out is looked for in the row.
   */
  respell?(fields: RowFields): Readonly<Record<string, unknown>>;
  read(fields: RowFields, shared: SharedPart): DatasetPart;
}

export const FAIL_TO_PASS = ["FAIL_TO_PASS", "fail_to_pass", "F2P"] as const;
export const PASS_TO_PASS = ["PASS_TO_PASS", "pass_to_pass", "P2P"] as const;
export const IMAGE = ["image_name", "docker_image", "image"] as const;
export const EVAL_SCRIPT = ["eval_script", "test_script"] as const;

export const SHARED_COLUMNS: readonly string[] = [
  ...["repo", "instance_id", "base_commit", "patch", "test_patch", "problem_statement", "hints_text"],
  ...["created_at", "version", "environment_setup_commit", "difficulty", "language"],
  ...[...FAIL_TO_PASS, ...PASS_TO_PASS, ...IMAGE, ...EVAL_SCRIPT],
  ...["log_parser", "eval_type", "image_assets", "install_config", "workdir"],
];

/** A patch of the row, mended; undefined where it is absent or refused. */
export function patchOf(fields: RowFields, name: string): Patch | undefined {
  const text = fields.text(name);
  if (text === undefined) return undefined;
  const mended = mendedOf(fields, name, text);
  if (mended === undefined) return undefined;
  for (const repair of mended.repairs) fields.repair(name, repair);
  fields.mended[name] = mended.patch.text;
  if (mended.patch.files.length > 0) return mended.patch;
  fields.refuse(
    name,
    "holds no change that can be applied",
    `Give ${name} with the content of its binary files.`,
  );
  return undefined;
}

function mendedOf(fields: RowFields, name: string, text: string): MendedPatch | undefined {
  try {
    return mendPatch(text);
  } catch (error) {
    if (!(error instanceof PatchSyntaxError)) throw error;
    fields.refuse(name, `is no patch: ${error.message}`, `Take ${name} from \`git diff\` again.`);
    return undefined;
  }
}

/** An image named after the instance, as registries allow it: lower case, no double underscore. */
export function imageNamedAfter(prefix: string, instance: string, separator: string): string {
  return `${prefix}${instance.replaceAll("__", separator)}:latest`.toLowerCase();
}
