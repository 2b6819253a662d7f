/**
 * Owns what one call of a tool does, in the words of the behaviour scan: which category, which files it shows or
 * changes, whether it runs tests, whether it could be carried out. What follows from many actions is scan.ts's.
 */
import { patchedFiles, shellFacts } from "./shell-command.js";
import { categoryOf, type ToolCategory } from "./tool-categories.js";
import type { TranscriptCall } from "./transcript.js";

export interface Action {
  readonly category: ToolCategory;
  readonly reads: readonly string[];
  readonly edits: readonly string[];
  readonly runsTests: boolean;
  readonly runsProgram: boolean;
  /** It is the call by which a harness ends its task. */
  readonly finishes: boolean;
  /** It is a command, and its answer says that it failed. */
  readonly isFailedCommand: boolean;
  /** Cut off, no JSON object, no tool that was offered, or refused by the harness for its form. */
  readonly isMalformed: boolean;
}

const PATHS = ["file_path", "filePath", "path", "notebook_path"];
const COMMANDS = ["command", "cmd"];
/** Take text, not JSON. */
const TEXT_TOOLS = new Set(["apply_patch"]);
/** What OpenCode makes of a call that it cannot carry out, in the history it sends. */
const INVALID_TOOL = "invalid";
/** What a tool that edits and shows is asked to do, by its `command` argument (OpenHands' file_editor). */
const SHOWING_COMMAND = "view";
/** How mini-swe-agent ends its task: a command its harness looks for. */
const SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";
/** How the harnesses tell a command's end: Claude Code, pi, Codex, OpenHands, mini-swe-agent, in this order. */
const EXIT_CODE =
  /^Exit code (-?\d+)|^Command exited with code (-?\d+)|^(?:Process exited with|Exit) code:? (-?\d+)|completed with exit code (-?\d+)|<returncode>(-?\d+)<\/returncode>/m;
/** How they refuse a call for its form: no such tool, arguments that its schema does not allow. */
const REFUSAL =
  /^(?:<tool_use_error>(?:InputValidationError|Error: No such tool)|Validation failed for tool|Tool \S+ not found|unsupported (?:custom tool )?call|failed to parse function arguments|The \S+ tool was called with invalid arguments|Model tried to call unavailable tool|Invalid input for tool)/;

export function actionOf(
  harness: string,
  call: TranscriptCall,
  offered: ReadonlySet<string> | undefined,
): Action {
  const given = argumentsOf(call);
  const named = categoryOf(harness, call.name);
  // What could not be carried out did nothing to any file.
  if (isMalformed(call, given, offered)) return { ...NOTHING, category: named };
  const path = textOf(given, PATHS);
  const command = named === "run" ? commandOf(given) : "";
  const shell = shellFacts(command);
  const category = categoryOfUse(named, given, shell);
  const patched = TEXT_TOOLS.has(call.name) ? patchedFiles(textOf(given, ["input"]) ?? call.arguments) : [];
  const of = path === undefined ? [] : [path];
  return {
    category,
    reads: [...(category === "read" ? of : []), ...shell.reads],
    edits: [...(category === "edit" ? of : []), ...patched, ...shell.edits],
    runsTests: category === "test" || shell.runsTests,
    runsProgram: category === "test" || shell.runsProgram,
    finishes: named === "finish" || command.includes(SUBMIT),
    isFailedCommand: (named === "run" || named === "test") && hasFailed(call.result),
    isMalformed: false,
  };
}

const NOTHING: Omit<Action, "category"> = {
  reads: [],
  edits: [],
  runsTests: false,
  runsProgram: false,
  finishes: false,
  isFailedCommand: false,
  isMalformed: true,
};

/** A shell is for what it was used for. */
function categoryOfUse(
  named: ToolCategory,
  given: Readonly<Record<string, unknown>> | undefined,
  shell: ReturnType<typeof shellFacts>,
): ToolCategory {
  if (named === "edit" && given?.command === SHOWING_COMMAND) return "read";
  if (named !== "run") return named;
  if (shell.runsTests) return "test";
  if (shell.edits.length > 0) return "edit";
  if (shell.runsProgram) return "run";
  if (shell.reads.length > 0) return "read";
  return shell.searches ? "search" : "run";
}

function argumentsOf({ arguments: text }: TranscriptCall): Readonly<Record<string, unknown>> | undefined {
  try {
    const given: unknown = JSON.parse(text);
    return typeof given === "object" && given !== null && !Array.isArray(given)
      ? (given as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function textOf(
  given: Readonly<Record<string, unknown>> | undefined,
  names: readonly string[],
): string | undefined {
  return names.map((name) => given?.[name]).find((value): value is string => typeof value === "string");
}

/** As text; a list of words is `["bash", "-lc", script]`, whose script counts. */
function commandOf(given: Readonly<Record<string, unknown>> | undefined): string {
  const listed = COMMANDS.map((name) => given?.[name]).find(Array.isArray) as unknown[] | undefined;
  if (listed !== undefined) return String(listed.at(-1) ?? "");
  return textOf(given, COMMANDS) ?? "";
}

function hasFailed(result: string | undefined): boolean {
  const code = EXIT_CODE.exec(result ?? "")
    ?.slice(1)
    .find((digits) => digits !== undefined);
  return code !== undefined && Number(code) !== 0;
}

function isMalformed(
  call: TranscriptCall,
  given: Readonly<Record<string, unknown>> | undefined,
  offered: ReadonlySet<string> | undefined,
): boolean {
  if (call.isCut || call.name === INVALID_TOOL || REFUSAL.test(call.result ?? "")) return true;
  if (offered !== undefined && !offered.has(call.name)) return true;
  return given === undefined && !TEXT_TOOLS.has(call.name) && call.arguments.trim() !== "";
}
