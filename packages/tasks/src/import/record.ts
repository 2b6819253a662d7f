/**
 * Owns the one shape every data set is read into: a task as a record tells it, checked and in one spelling.
 * Does not read rows (datasets/) or write directories (directory/).
 */
import type { Patch } from "./patch/parse-patch.js";

export const DATASETS = [
  "swe-bench",
  "swe-gym",
  "swe-rebench",
  "swe-rebench-v2",
  "swe-smith",
  "openswe",
  "swe-bench-multimodal",
  "swe-bench-pro",
  "multi-swe-bench",
  "r2e-gym",
] as const;
export type DatasetName = (typeof DATASETS)[number];

/** How the tests are run: a script the record brings, or the parts of one that is built (evaluation/). */
export type Evaluation =
  | { readonly kind: "script"; readonly text: string }
  | {
      readonly kind: "built";
      /** Shell lines before anything else of the record: locale, variables. */
      readonly prepare: readonly string[];
      /** Shell lines that install the changed sources again. */
      readonly install: readonly string[];
      /** Test files of the image to be as it has them, relative to the repository. */
      readonly restore?: readonly string[];
      /** Shell lines; the exit code of the last is the exit code of the run. */
      readonly test: readonly string[];
      /** Whether images of this data set keep their packages in the conda environment `testbed`. */
      readonly usesConda: boolean;
    };

export interface TaskRecord {
  readonly dataset: DatasetName;
  /** Name of the directory; matches [A-Za-z0-9_-]{1,128}. */
  readonly id: string;
  /** As the data set names it. */
  readonly instance: string;
  /** `owner/name` of the project the code is of, not of a mirror. */
  readonly repository: string;
  /** Lower case. */
  readonly language: string;
  readonly baseCommit?: string;
  readonly version?: string;
  /** ISO 8601. */
  readonly createdAt?: string;
  readonly difficulty?: string;
  readonly statement: string;
  /** The repair. */
  readonly gold: Patch;
  /** What makes the bug in the image first; its reverse is `gold`. */
  readonly bug?: Patch;
  /** Absent where the tests are those of the image already. */
  readonly tests?: Patch;
  /** At least one, unless `isExitCodeOnly`. Without duplicates. */
  readonly failToPass: readonly string[];
  /** Without duplicates and without what is in `failToPass`. */
  readonly passToPass: readonly string[];
  readonly image?: string;
  /** Where `image` is absent. */
  readonly dockerfile?: string;
  /** Absolute; absent: the image's own. */
  readonly workdir?: string;
  /** Name of the log parser; absent: the one of the repository. */
  readonly parser?: string;
  readonly evaluation: Evaluation;
  /** Graded by the exit code of its script alone, which the graded code can forge. */
  readonly isExitCodeOnly: boolean;
  /** The row, lists as lists and patches repaired: what tests/config.json holds. */
  readonly fields: Readonly<Record<string, unknown>>;
}
