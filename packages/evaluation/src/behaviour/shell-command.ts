/**
 * Owns what a shell command does to files and which programs it starts, as far as its text tells: enough to say that a
 * file was shown or changed and that tests ran. It is no shell: what a script or an interpreter does inside is unknown.
 */

import { type SimpleCommand, simpleCommands } from "./shell-words.js";

export interface ShellFacts {
  /** Files shown, as written. */
  readonly reads: readonly string[];
  /** Files written, as written. */
  readonly edits: readonly string[];
  readonly runsTests: boolean;
  /** A test runner, an interpreter or a program of the repository was started. */
  readonly runsProgram: boolean;
  /** Looks for names or text: grep, find, ls. */
  readonly searches: boolean;
}

const SHOWS = new Set(["cat", "head", "tail", "less", "more", "nl", "bat", "sed"]);
const SEARCHES = new Set(["grep", "rg", "ag", "find", "fd", "ls", "tree", "git"]);
const SEARCHING_GIT = new Set(["grep", "ls-files"]);
const INTERPRETER = /^(python[\d.]*|pypy3?|node|deno|bun|ruby|perl|php|java|tsx|ts-node)$/;
const RUNNER = /^(pytest|py\.test|tox|nox|jest|vitest|mocha|ava|karma|ctest|rspec|phpunit|nosetests|trial)$/;
const PACKAGE_MANAGER = /^(npm|pnpm|yarn|bun)$/;
/** Before a command of its own: `timeout 60 pytest`, `uv run pytest`. */
const WRAPPER =
  /^(sudo|time|timeout|env|nohup|exec|command|xvfb-run|npx|bunx|uv|uvx|poetry|pipenv|hatch|pdm|rye|bundle)$/;
const NOT_A_FILE = /^(\/dev\/|-$)/;
const PATCHED = /^\*\*\* (?:Update|Add|Delete) File: (.+)$/gm;

export function shellFacts(command: string): ShellFacts {
  const { script, bodies } = withoutHereDocuments(command);
  const facts = simpleCommands(script).map(factsOf);
  const patched = [...bodies.join("\n").matchAll(PATCHED)].map(([, path]) => path!.trim());
  return {
    reads: facts.flatMap(({ reads }) => reads),
    edits: [...facts.flatMap(({ edits }) => edits), ...patched],
    runsTests: facts.some(({ runsTests }) => runsTests),
    runsProgram: facts.some(({ runsProgram }) => runsProgram),
    searches: facts.some(({ searches }) => searches),
  };
}

/** Files a patch in the `*** Update File:` form names. */
export function patchedFiles(patch: string): string[] {
  return [...patch.matchAll(PATCHED)].map(([, path]) => path!.trim());
}

function factsOf({ words, redirected }: SimpleCommand): ShellFacts {
  const command = unwrapped(words);
  const program = (command[0] ?? "").split("/").at(-1)!;
  const args = command.slice(1);
  const runsTests = isTestRun(program, args);
  const shows = SHOWS.has(program) && !(program === "sed" && args.some(isInPlace));
  return {
    reads: shows ? shownFiles(program, args) : [],
    edits: [...redirected, ...editedFiles(program, args)].filter((path) => !NOT_A_FILE.test(path)),
    runsTests,
    runsProgram: runsTests || isProgram(command[0] ?? "", program, args),
    searches: SEARCHES.has(program) && (program !== "git" || SEARCHING_GIT.has(args[0] ?? "")),
  };
}

function isTestRun(program: string, args: readonly string[]): boolean {
  const plain = args.filter((arg) => !arg.startsWith("-"));
  if (RUNNER.test(program) || /^run_?tests?(\.\w+)?$/.test(program)) return true;
  if (PACKAGE_MANAGER.test(program))
    return isTestName(plain[0] === "run" || plain[0] === "exec" ? plain[1] : plain[0]);
  if (INTERPRETER.test(program)) return isInterpretedTestRun(args, plain);
  switch (program) {
    case "go":
    case "cargo":
    case "dotnet":
    case "swift":
      return plain[0] === "test" || plain[0] === "nextest";
    case "make":
    case "rake":
    case "mvn":
    case "mvnw":
    case "gradle":
    case "gradlew":
      return plain
        .map((goal) => goal.split(":").at(-1)!)
        .some((goal) => isTestName(goal) || goal === "check" || goal === "verify");
    default:
      return false;
  }
}

function isInterpretedTestRun(args: readonly string[], plain: readonly string[]): boolean {
  if (args.includes("--test")) return true;
  const module = args[0] === "-m" ? args[1] : undefined;
  if (module !== undefined) return /^(pytest|unittest|nose2?|tox|nox|django)$/.test(module);
  const [script = "", ...rest] = plain;
  return (
    /(^|\/)run_?tests?\.\w+$/.test(script) || (/(^|\/)(manage|setup)\.py$/.test(script) && rest[0] === "test")
  );
}

function isTestName(name: string | undefined): boolean {
  return name !== undefined && (/^t(est)?$/.test(name) || /^tests?[:-]/.test(name) || RUNNER.test(name));
}

function isProgram(written: string, program: string, args: readonly string[]): boolean {
  if (INTERPRETER.test(program))
    return !args.every((arg) => /^(-V|--version|-v)$/.test(arg)) || args.length === 0;
  if (program === "bash" || program === "sh") return args.length > 0;
  if ((program === "go" || program === "cargo") && args[0] === "run") return true;
  return written.startsWith("./");
}

/** Options and their values are none; of sed the script is none either. */
function shownFiles(program: string, args: readonly string[]): string[] {
  const files: string[] = [];
  let skipsNext = false;
  let owesScript = program === "sed" && !args.includes("-e") && !args.includes("-f");
  for (const arg of args) {
    if (skipsNext) skipsNext = false;
    else if (/^-[nc]$/.test(arg) && (program === "head" || program === "tail")) skipsNext = true;
    else if (arg === "-e" || arg === "-f") skipsNext = true;
    else if (arg.startsWith("-")) continue;
    else if (owesScript) owesScript = false;
    else files.push(arg);
  }
  return files;
}

function editedFiles(program: string, args: readonly string[]): string[] {
  const plain = args.filter((arg) => !arg.startsWith("-"));
  if (program === "tee") return plain;
  if (program === "sed" && args.some(isInPlace))
    return args.includes("-e") ? plain.slice(-1) : plain.slice(1);
  return [];
}

function isInPlace(arg: string): boolean {
  return /^(-[a-zA-Z]*i|--in-place)/.test(arg);
}

/** `FOO=1 timeout 60 pytest -q` runs pytest. */
function unwrapped(words: readonly string[]): readonly string[] {
  let at = 0;
  while (at < words.length) {
    const word = words[at]!;
    if (/^[A-Za-z_]\w*=/.test(word)) at++;
    else if (WRAPPER.test(word)) {
      at++;
      while (at < words.length && /^(-.*|\d+[smh]?|run|exec|[A-Za-z_]\w*=.*)$/.test(words[at]!)) at++;
    } else break;
  }
  return words.slice(at);
}

/** Bodies of here-documents are no commands; a patch in one is kept. */
function withoutHereDocuments(command: string): { script: string; bodies: string[] } {
  const lines = command.split("\n");
  const kept: string[] = [];
  const bodies: string[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, mark] = /<<-?\s*['"]?(\w+)['"]?/.exec(lines[at]!) ?? [];
    kept.push(mark === undefined ? lines[at]! : lines[at]!.replace(/<<-?\s*['"]?\w+['"]?/, ""));
    if (mark === undefined) continue;
    while (++at < lines.length && lines[at]!.trim() !== mark) bodies.push(lines[at]!);
  }
  return { script: kept.join("\n"), bodies };
}
