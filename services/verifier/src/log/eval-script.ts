/**
 * Owns taking a record's script apart: what prepares the work tree, and the tests' own command. Marks, exit code and
 * log are made on the host from the two, so that nothing the tests print can pass for them.
 *
 * E1  What the first part leaves to the second is its exported variables, functions and directory, in a file; its
 *     processes are dead by then.
 * E2  The log is standard output; standard error is the channel's, on a descriptor of its own.
 */
const START = ">>>>> Start Test Output";
const END = ">>>>> End Test Output";
/** Where the first part leaves its state. */
export const STATE_DIRECTORY = "/mortise-state";
/** Descriptors of the channel: results, and the line with the nonce. High, as shells save their own from 10 on. */
const RESULTS_FD = 57;
const NONCE_FD = 58;

/** Variables by which code is loaded; kept only where the script itself sets them. */
const CODE_LOADING = [
  ...["BASH_ENV", "ENV", "LD_AUDIT", "LD_PRELOAD", "NODE_OPTIONS", "PERL5OPT", "PYTEST_ADDOPTS"],
  ...["PYTEST_PLUGINS", "PYTHONPATH", "PYTHONSTARTUP", "RUBYOPT"],
];

export interface EvalScript {
  /** Undefined where the script has no marks: all of it is the test command then. */
  readonly prepare: string | undefined;
  readonly tests: string;
}

/** Splits a script at its marks; what stands behind the end mark only tidies up, and is not run. */
export function splitEvalScript(text: string): EvalScript {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => isMark(line, START));
  if (start < 0) return { prepare: undefined, tests: text };
  const end = lines.findIndex((line, at) => at > start && isMark(line, END));
  const tests = lines.slice(start + 1, end < 0 ? lines.length : end);
  // The host has the exit code: a line that keeps it would be the last command.
  while (tests.length > 0 && /^\s*(?:\w+=\$\?\s*)?$/.test(tests.at(-1)!)) tests.pop();
  return { prepare: lines.slice(0, start).join("\n"), tests: tests.join("\n") };
}

/** For bash: the first part, its output in one stream, its state left behind. */
export function prepareCommand(prepare: string): string {
  return [
    "exec 2>&1 < /dev/null",
    prepare,
    "{ set +x; } 2> /dev/null",
    `{ export -p; declare -f; printf 'cd %q\\n' "$PWD"; } > ${STATE_DIRECTORY}/state`,
    "exit 0",
  ].join("\n");
}

/**
 * For bash: the tests' own command (E2). Its exit code is that of the last command. `channel` is what gives a runner its
 * channel; undefined where there is none.
 */
export function testsCommand({ prepare, tests }: EvalScript, channel: readonly string[] | undefined): string {
  const hasChannel = channel !== undefined;
  return [
    hasChannel ? `exec ${RESULTS_FD}>&2 2>&1 ${NONCE_FD}<&0 < /dev/null` : "exec 2>&1 < /dev/null",
    ...(prepare === undefined ? [] : [`. ${STATE_DIRECTORY}/state`, ...unsetOthers(prepare)]),
    ...(/^\s*set\s.*pipefail/m.test(prepare ?? "") ? ["set -o pipefail"] : []),
    ...(hasChannel ? [`export MORTISE_CHANNEL=${RESULTS_FD},${NONCE_FD}`, ...channel] : []),
    tests,
  ].join("\n");
}

function unsetOthers(prepare: string): string[] {
  const others = CODE_LOADING.filter((name) => !new RegExp(`\\b${name}=`).test(prepare));
  return others.length === 0 ? [] : [`unset ${others.join(" ")}`];
}

/** A mark is a no-op with a text, or is echoed. */
function isMark(line: string, mark: string): boolean {
  return line.includes(mark) && /^\s*(?::|echo)\s/.test(line);
}
