/** Owns the errors of tasks and data sets of them. */
import type { CatalogueRow } from "./row.js";

export const TASK_ERRORS = {
  MORTISE_TASK_BUILD: {
    disposition: "terminal",
    meaning: "A task's image cannot be built from its Dockerfile.",
    fix: "Correct the named step of environment/Dockerfile; it is not tried again until the task changes.",
  },
  MORTISE_TASK_DIGEST: {
    disposition: "terminal",
    meaning: "A task directory differs from the digest it was indexed with.",
    fix: "Rebuild the task index, or restore the task directory.",
  },
  MORTISE_TASK_EXISTS: {
    disposition: "terminal",
    meaning: "A task directory or index is there already, with other content.",
    fix: "Pass --replace to write it anew, or name another directory.",
  },
  MORTISE_TASK_INVALID: {
    disposition: "terminal",
    meaning: "A task directory is malformed.",
    fix: "Correct the named file and field.",
  },
  MORTISE_TASK_OVERLAP: {
    disposition: "terminal",
    meaning: "Two task sets that must be disjoint are not.",
    fix: "Exclude the named repositories or instances.",
  },
  MORTISE_TASK_RECORD: {
    disposition: "terminal",
    meaning: "A record of a data set cannot be used.",
    fix: "Correct the named field of the record, or leave the record out.",
  },
  MORTISE_TASK_SOURCE: {
    disposition: "terminal",
    meaning: "A source of tasks cannot be read.",
    fix: "Give a JSON, JSONL or parquet file, or a revision of a data set that can be reached.",
  },
  MORTISE_TASK_UNKNOWN: {
    disposition: "terminal",
    meaning: "A task id is not in the task directory.",
    fix: "Check tasks.directory and the task index.",
  },
} as const satisfies Record<string, CatalogueRow>;
