/**
 * Owns the marks an evaluation script leaves in its log: where the output of the tests starts and ends, the
 * exit code behind it, and the harness's own words for what went wrong. Does not read test results.
 *
 * Under `set -x` a mark is the trace of a no-op (`+ : '>>>>> Start Test Output'`); other scripts echo it, with
 * or without a trace of the echo before it. Before the start the log quotes the patch, so a start must stand
 * alone on its line; after it, any mention of the end is one, because that is what other graders cut at.
 *
 * P1  One start and one end. More of either were printed by what the script ran.
 * P2  Start and end have the same form: one script wrote both.
 * P3  The exit code stands after the end, once.
 */

const ARROWS = ">>>>> ";
const START = ">>>>> Start Test Output";
const END = ">>>>> End Test Output";
const EXIT_CODE = /^(>>>>> )?Test Exit Code: *(-?\d+)$/;
/** What `set -x` puts before a no-op; a trace of an echo is not the mark, the echo's own output is. */
const TRACE = /^\++ : ['"]?$/;
const TRACED_MARK = /\+ : ['"]?>>>>> /;
const TRACED_ECHO = /^\++ echo ['"]?(?:>>>>> |Test Exit Code)/;
/** What is left of a trace when other output stands before it on the line. */
const TRACE_TAIL = /(?:\++ : )?['"]?$/;
const TIME_LIMIT = /^Timeout error: \d+ seconds exceeded/;
/** The harness's words; `>>>>> Applied Patch` is what scripts without marks end their preparation with. */
const WORDS = [
  [">>>>> Patch Apply Failed", "patch-failed"],
  [">>>>> Reset Failed", "reset-failed"],
  [">>>>> Tests Errored", "tests-errored"],
  [">>>>> Tests Timed Out", "timed-out"],
  [">>>>> Applied Patch", "patch-applied"],
] as const;

export type HarnessWord = (typeof WORDS)[number][1];
export type Place = "before" | "inside" | "after";
type Form = "trace" | "plain";

/**
 * Cuts whole lines of text at the lines with arrows, which are few: each comes with the text before it, and what is
 * behind the last one without a line. Both parts together are the text, line feeds behind the lines aside.
 */
export function* aroundArrows(text: string): IterableIterator<[plain: string, line: string | undefined]> {
  let from = 0;
  for (let at = text.indexOf(ARROWS); at >= 0; at = text.indexOf(ARROWS, from)) {
    const start = text.lastIndexOf("\n", at) + 1;
    const found = text.indexOf("\n", at);
    const end = found < 0 ? text.length : found;
    yield [text.slice(from, start), text.slice(start, end)];
    from = end + 1;
  }
  if (from < text.length) yield [text.slice(from), undefined];
}

/** What a mark without arrows starts with: an exit code, a time limit. */
export const MARK_START = "T".charCodeAt(0);

export class Markers {
  readonly tamper: string[] = [];
  /** Words of the harness, and where they stood: inside, what is tested may have printed them. */
  readonly words = new Map<HarnessWord, Place>();
  place: Place = "before";
  /** Exit code of the test command, where the script recorded one. */
  exitCode: number | undefined;
  starts = 0;
  ends = 0;
  #form: Form | undefined;

  /** Takes one line; returns what of it belongs to the output, undefined when it is a mark or a word. */
  read(line: string): string | undefined {
    const trimmed = line.trim();
    if (this.#form !== "trace" && TRACED_ECHO.test(trimmed)) return undefined;
    if (this.place === "before")
      return isMark(trimmed, START) ? this.#start(trimmed) : this.#word(trimmed, line);
    const end = line.indexOf(END);
    if (end >= 0) return this.#end(line, end);
    if (line.includes(START)) return this.#accuse("the start mark of the test output is printed again");
    const code = EXIT_CODE.exec(trimmed);
    return code === null ? this.#word(trimmed, line) : this.#exitCode(line, code);
  }

  #start(line: string): undefined {
    this.starts += 1;
    this.#form = formOf(line);
    this.place = "inside";
  }

  #end(line: string, at: number): string | undefined {
    if (this.ends > 0) this.#accuse("the end mark of the test output is printed twice");
    else if (formOf(line) !== this.#form) this.#accuse("the end mark has another form than the start mark");
    this.ends += 1;
    const isInside = this.place === "inside";
    this.place = "after";
    const rest = line.slice(0, at).replace(TRACE_TAIL, "");
    return isInside && rest !== "" ? rest : undefined;
  }

  #exitCode(line: string, [, marked, digits]: RegExpExecArray): string | undefined {
    if (this.place === "inside")
      return marked === undefined ? line : this.#accuse("an exit code is printed inside the test output");
    const code = Number(digits);
    if (this.exitCode !== undefined && this.exitCode !== code)
      this.#accuse(`two exit codes are printed, ${this.exitCode} and ${code}`);
    this.exitCode = code;
    return undefined;
  }

  #word(trimmed: string, line: string): string | undefined {
    const word = TIME_LIMIT.test(trimmed)
      ? "timed-out"
      : WORDS.find(([text]) => trimmed.startsWith(text) || isMark(trimmed, text))?.[1];
    if (word === undefined) return line;
    if (this.words.get(word) !== "before") this.words.set(word, this.place);
    return undefined;
  }

  #accuse(reason: string): undefined {
    if (!this.tamper.includes(reason)) this.tamper.push(reason);
  }
}

/** The mark alone on its line, or as the trace of a no-op. */
function isMark(line: string, mark: string): boolean {
  const at = line.indexOf(mark);
  return at === 0 || (at > 0 && TRACE.test(line.slice(0, at)));
}

function formOf(line: string): Form {
  return TRACED_MARK.test(line) ? "trace" : "plain";
}
