/**
 * Owns what Mortise knows about a harness: which version, how its runtime is obtained, how it is launched and
 * pointed at a model, how its end is understood, where its own transcript lies, and what its tools are called.
 * An adapter is data and pure functions; it starts nothing, installs nothing and reads no files.
 */

/** A model API a harness can speak. */
export type WireApi = "chat" | "responses" | "messages";

/** Everything one launch depends on. Paths are absolute, as the harness sees them. */
export interface LaunchTarget {
  /** Where the runtime was put, read-only to the harness. */
  readonly runtime: string;
  /** A fresh directory that becomes the harness's home. */
  readonly home: string;
  /** The repository it works on. */
  readonly workspace: string;
  /** Origin of the model API without a path, for example `http://127.0.0.1:8080`. */
  readonly modelUrl: string;
  /** The session's token. It is put into the environment and into no file. */
  readonly key: string;
  /** Model name the harness sends. */
  readonly model: string;
  readonly wireApi: WireApi;
  /** The task, already in the form `instruct` gave it. */
  readonly instruction: string;
  /** Context window the harness is told, tokens; it compacts by this. */
  readonly contextTokens: number;
  /** Longest reply it is told to ask for, tokens. */
  readonly maxOutputTokens: number;
  /** Interpreters, as the harness sees them; those the runtime does not need are not used. */
  readonly node: string;
  readonly python: string;
  /** PATH of the place it works in: where its tools look for programs. */
  readonly path: string;
}

export interface LaunchFile {
  readonly path: string;
  readonly content: string;
}

/** What to start. The environment is complete: nothing else is inherited. */
export interface Launch {
  readonly argv: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  /** Written before the start, with their directories. */
  readonly files: readonly LaunchFile[];
}

/** A process that has ended. */
export interface ProcessEnd {
  /** Undefined when a signal ended it. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Why a harness ended, in the words of the site file's `exitCodes`. */
export type EndKind = "completed" | "turn-limit" | "token-limit" | "agent-crash" | "proxy-failure";

export interface HarnessEnd {
  readonly kind: EndKind;
  /** For people; empty for a plain completion. */
  readonly reason: string;
}

/** A call of one of the harness's tools. */
export interface ToolUse {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/**
 * The harness's tools for what every coding agent does, so that a scripted policy can act in it. Absent: the
 * harness has no such tool.
 */
export interface ToolVocabulary {
  run?(command: string): ToolUse;
  write?(path: string, text: string): ToolUse;
  /** Replaces one piece of the file the instruction names. */
  replace?(before: string, after: string): ToolUse;
  /** Starts a sub-agent and waits for its answer, as far as the harness can wait. */
  delegate?(prompt: string): ToolUse;
  /** Waits for the sub-agent, where that is a call of its own. Undefined when `result` is not that of `delegate`. */
  awaitDelegate?(result: string): ToolUse | undefined;
  /** Ends the task, where an answer without a call does not. */
  finish?(message: string): ToolUse;
}

/** How a runtime is obtained. Versions are exact. */
export type RuntimeSpec =
  | {
      readonly kind: "npm";
      readonly packages: Readonly<Record<string, string>>;
      /** File inside the runtime that must exist afterwards. */
      readonly probe: string;
    }
  | {
      readonly kind: "pypi";
      readonly packages: Readonly<Record<string, string>>;
      /** Oldest Python it runs on. */
      readonly python: readonly [major: number, minor: number];
      readonly probe: string;
    }
  /** Part of this project: nothing is obtained. */
  | { readonly kind: "bundled"; readonly probe: string }
  /** Whatever the operator installed: the command adapter. */
  | { readonly kind: "installed" };

/** What the place a harness runs in must have. Its interpreter is brought along and needs nothing there. */
export interface Needs {
  readonly interpreter: "node" | "python" | "none";
  /** Native programs, below the runtime, which are started with the C library of that place. */
  readonly binaries: readonly string[];
  /** Programs its tools call by name. Those the host has are brought along for places without them. */
  readonly programs: readonly string[];
}

export interface HarnessAdapter {
  readonly name: string;
  readonly version: string;
  /** Proprietary runtimes are installed by the operator's machine only and never redistributed. */
  readonly licence: "open" | "proprietary";
  readonly runtime: RuntimeSpec;
  readonly needs: Needs;
  /** Files of the adapter's own folder that belong into the runtime. */
  readonly programs: readonly string[];
  /** The first one is used when none is asked for. */
  readonly wireApis: readonly [WireApi, ...WireApi[]];
  /** The text a task's instruction becomes for this harness. */
  instruct(instruction: string): string;
  launch(target: LaunchTarget): Launch;
  ending(end: ProcessEnd): HarnessEnd;
  /** Glob patterns of the harness's own transcript, relative to its home. */
  readonly transcript: readonly string[];
  tools(wireApi: WireApi): ToolVocabulary;
  readonly behaviour: Behaviour;
}

/** What a harness cannot do, with the reason; such a case is never counted as passed. */
export interface Lacks {
  readonly lacks: string;
}

/**
 * What a harness is known to do at the model API where harnesses differ: data the conformance cases check, so a
 * new version that behaves otherwise fails visibly.
 */
export interface Behaviour {
  readonly streams: boolean;
  readonly parallelCalls: true | Lacks;
  /** `own-thread`: its calls are a thread of their own. */
  readonly subAgent: "own-thread" | Lacks;
  /** How it compacts when reported usage nears the window it was told. */
  readonly compaction: CompactionTrigger | Lacks;
  /** After the model refused a request as too long. */
  readonly overflow: "compacts" | "ends";
  /** After a text reply that stopped at the length limit. */
  readonly truncatedText: "continues" | "ends" | Lacks;
  /** After a reply that stopped inside a tool call. */
  readonly truncatedCall: "continues" | "ends" | Lacks;
  /** After a connection that died behind a complete tool call. */
  readonly cut: "adopts" | "retries";
  /**
   * Wire APIs over which it keeps the words of a reply that broke off beside those of the retry. What it sends back is
   * then no reply that was sampled: the turn after it is a branch (C4). Absent: none.
   */
  readonly keepsBrokenText?: readonly WireApi[];
  /** After an HTTP 529, 503 or 500. */
  readonly overload: "retries" | "ends";
}

export interface CompactionTrigger {
  /** Window it is told, tokens, given the length of its first prompt. */
  window(firstPromptTokens: number): number;
  /** `within`: between two turns of a task, which goes on; `behind`: only when the task has ended. */
  readonly when: "within" | "behind";
}

export function lacks(reason: string): Lacks {
  return { lacks: reason };
}

export function isLacking(value: unknown): value is Lacks {
  return typeof value === "object" && value !== null && "lacks" in value;
}

/** Environment every harness gets: a home of its own, a terminal that draws nothing. `first` leads its PATH. */
export function baseEnvironment(target: LaunchTarget, ...first: readonly string[]): Record<string, string> {
  const PATH = [...first, target.path].join(":");
  return { HOME: target.home, PATH, LANG: "C.UTF-8", TERM: "dumb", NO_COLOR: "1" };
}

/** PATH of a place that names none. */
export const STANDARD_PATH = "/usr/local/bin:/usr/bin:/bin";

/** The last non-empty line, where programs say why they stopped. */
export function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1)?.trim() ?? "";
}

/** Ending of a harness that exits with 0 when it is done and with something else when it is not. */
export function endingByExitCode(end: ProcessEnd): HarnessEnd {
  if (end.exitCode === 0) return { kind: "completed", reason: "" };
  const said = lastLine(end.stderr) || lastLine(end.stdout);
  const how = end.exitCode === undefined ? "killed" : `exit code ${end.exitCode}`;
  return { kind: "agent-crash", reason: said === "" ? how : `${how}: ${said}` };
}
