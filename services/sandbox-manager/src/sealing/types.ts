/**
 * Owns what is said to sealing and what it answers: the answers of a task, the request, the reports. Reports are
 * plain JSON, of bounded size, and equal for equal roots; they name probes and never quote them, because a report is
 * stored with the trial and an answer must not be readable there. Does not do anything.
 */

/** What must not be found where an agent runs. Whatever is absent is not searched for, and the report says so. */
export interface Answers {
  /** Unified diff that solves the task. */
  readonly goldPatch?: string;
  /** Unified diff that adds the hidden tests. */
  readonly testPatch?: string;
  /** Hidden files that are no patch: a solution script, tests as files. `path` is only for the report. */
  readonly hiddenFiles?: readonly { readonly path: string; readonly content: string }[];
  /** Ids of hidden tests, as the task's expectations spell them. */
  readonly hiddenTests?: readonly string[];
  /** Full ids, in lower-case hex, of commits made after the base. */
  readonly laterCommits?: readonly string[];
}

export interface SealRequest {
  /** Absolute path inside the root: the workspace, or a directory in it. */
  readonly workdir: string;
  /** A directory of the host outside the root, missing or empty: everything taken out of the root is moved here. */
  readonly store: string;
  readonly answers: Answers;
  /** Absolute path of the host's git; the usual places are looked at when absent. */
  readonly git?: string;
  readonly limits?: Partial<SearchLimits>;
  /** A directory of the host for what is needed only meanwhile; the system's own when absent. */
  readonly scratch?: string;
}

export interface SearchLimits {
  /** What one file may become when it is decompressed, nested archives included. */
  readonly decompressedBytes: number;
  /** Archives in archives. */
  readonly depth: number;
  /** Hits and gaps listed; all are counted. */
  readonly listed: number;
}

export const DEFAULT_SEARCH_LIMITS: SearchLimits = {
  decompressedBytes: 16 * 1024 ** 3,
  depth: 5,
  listed: 200,
};

/** Why something left the root. */
export type TakenKind =
  | "history"
  | "nested-repository"
  | "related-repository"
  | "worktree-link"
  | "bundle"
  | "cache"
  | "backup"
  | "shell-history"
  | "bytecode"
  | "install-metadata";

export interface Taken {
  readonly path: string;
  readonly kind: TakenKind;
}

export const MAX_MOVED_LISTED = 500;

export interface HistoryReport {
  /** `none`: the workspace is in no repository, and none was made. */
  readonly state: "hidden" | "none";
  /** Where the new repository is, below the root. */
  readonly repository?: string;
  /** Id of the one commit in it. */
  readonly head?: string;
  /** Where the list of tracked files came from: the old index, or, without one, all files of the workspace. */
  readonly trackedFrom?: "index" | "files";
  readonly nTracked: number;
  readonly nMoved: number;
  /** The first `MAX_MOVED_LISTED`, in order of path; `moved.json` in the store names all, in the order they lie there. */
  readonly moved: readonly Taken[];
  /** Repositories that share nothing with the workspace's and stay, to be searched. */
  readonly kept: readonly string[];
}

export type ProbeKind = "gold" | "gold-name" | "test" | "hidden-file" | "test-id" | "commit";

export interface ProbeReport {
  readonly id: string;
  readonly kind: ProbeKind;
  /** Where it comes from: `path:line` of the patched file, or the position in a list. */
  readonly source: string;
  readonly nBytes: number;
  /** Lower-case hex sha256 of the bytes searched for. */
  readonly sha256: string;
}

/** How many lines of a patch can be told from the base files. */
export interface Distinctiveness {
  readonly kind: "gold" | "test" | "hidden-file";
  readonly nLines: number;
  readonly nDistinctive: number;
  readonly nProbes: number;
}

export type HitKind =
  | "file"
  | "compressed"
  | "git-object"
  | "bytecode"
  /** The base files already have what the gold patch adds. */
  | "applied";

export interface Hit {
  readonly kind: HitKind;
  /** Below the root; `archive!member` and `repository:object` for what lies inside. */
  readonly path: string;
  readonly probe: string;
}

/** Something whose content was not looked at. */
export interface Gap {
  readonly path: string;
  readonly reason:
    | "damaged"
    | "encrypted"
    | "over-limit"
    | "no-decoder"
    | "incomplete-pack"
    | "special-file-system";
  /** Damaged and encrypted content tells an agent no more than it tells us; anything else means: not clean. */
  readonly isAccepted: boolean;
}

export interface SearchReport {
  /** No hit, and nothing left out that could hold one. */
  readonly isClean: boolean;
  readonly searchedFiles: number;
  /** Bytes of files, without holes. */
  readonly searchedBytes: number;
  /** Bytes that came out of archives and packs. */
  readonly decompressedBytes: number;
  readonly searchedObjects: number;
  readonly probes: readonly ProbeReport[];
  readonly distinctiveness: readonly Distinctiveness[];
  readonly nHits: number;
  readonly hits: readonly Hit[];
  readonly nGaps: number;
  readonly gaps: readonly Gap[];
}

/** The record of a sealed root, format `mortise-seal/1`. */
export interface SealReport {
  readonly format: "mortise-seal/1";
  readonly history: HistoryReport;
  readonly search: SearchReport;
}
