/**
 * Owns reading one line of pytest's output as a result. Does not keep results and does not know which of
 * pytest's forms wins (see pytest.ts).
 *
 *   PASSED t.py::a[x y]                        short summary (`-rA`)
 *   FAILED t.py::a - assert 1 == 2             short summary with a reason
 *   t.py::a[x y] PASSED             [ 50%]     verbose
 *   [gw0] [ 10%] PASSED t.py::a                verbose under xdist
 */
import type { LoggedStatus } from "../../results/status.js";

export interface PytestResult {
  readonly name: string;
  readonly status: LoggedStatus;
  /** The name is a node id, not text that a record happens to expect. */
  readonly isNodeId?: boolean;
  /** Text after " - "; only reports of failures, skips and expected failures have one. */
  readonly reason?: string;
}

const STATUSES = new Map<string, LoggedStatus>([
  ["PASSED", "passed"],
  ["FAILED", "failed"],
  ["ERROR", "error"],
  ["SKIPPED", "skipped"],
  ["XFAIL", "xfailed"],
]);
/** Words that end a verbose line; XPASS and RERUN have no status of their own. */
const VERBOSE_WORDS = [...STATUSES.keys(), "XPASS", "RERUN"] as const;
const REASON = " - ";

/** First characters of the status words, so that most lines are refused after one comparison. */
export function mayStartWithStatus(code: number): boolean {
  return code === P || code === F || code === E || code === S || code === X;
}
const [P, F, E, S, X] = ["P", "F", "E", "S", "X"].map((letter) => letter.charCodeAt(0));

/**
 * A line of the short summary. A status word, one space and a node id; more spaces stand in live logs, whose
 * `PASSED   [100%]` has no name. Two records of real data sets expect that text as a test, so what the record
 * expects is a name however it looks.
 */
export function readSummaryLine(line: string, expected: ReadonlySet<string>): PytestResult | undefined {
  const space = line.indexOf(" ");
  const status = space < 0 ? undefined : STATUSES.get(line.slice(0, space));
  if (status === undefined) return undefined;
  const rest = line.slice(space + 1).trim();
  const word = firstWord(rest);
  const isId = line.charCodeAt(space + 1) !== SPACE && isNodeId(word);
  return isId || expected.has(word) ? { ...splitReason(rest, status), isNodeId: isId } : undefined;
}

const SPACE = " ".charCodeAt(0);

/** A line of the verbose report: the first status word after the node id counts, never one in a reason. */
export function readVerboseLine(line: string): PytestResult | "rerun" | undefined {
  const colons = line.indexOf("::");
  if (colons < 0) return undefined;
  const space = line.indexOf(" ");
  if (space < 0) return undefined;
  if (space < colons) return line.startsWith("[gw") ? readWorkerLine(line) : undefined;
  let end = -1;
  let word = "";
  for (const candidate of VERBOSE_WORDS) {
    const at = line.indexOf(` ${candidate}`, colons);
    if (at >= 0 && (end < 0 || at < end) && endsStatus(line, at + 1 + candidate.length)) {
      end = at;
      word = candidate;
    }
  }
  if (end < 0) return undefined;
  if (word === "RERUN") return "rerun";
  const status = STATUSES.get(word);
  return status === undefined ? undefined : { name: line.slice(0, end).trimEnd(), status };
}

/** After a status word of a verbose line come its end, a progress mark or a reason in parentheses. */
function endsStatus(line: string, at: number): boolean {
  const rest = line.slice(at, at + 16).trimStart();
  return rest === "" || (line.charCodeAt(at) === SPACE && (rest.startsWith("[") || rest.startsWith("(")));
}

function readWorkerLine(line: string): PytestResult | "rerun" | undefined {
  let at = line.indexOf("] ") + 2;
  if (at < 2) return undefined;
  if (line.charCodeAt(at) === OPEN) at = line.indexOf("] ", at) + 2;
  const space = line.indexOf(" ", at);
  if (at < 2 || space < 0) return undefined;
  const word = line.slice(at, space);
  if (word === "RERUN") return "rerun";
  const status = STATUSES.get(word);
  const name = line.slice(space + 1).trim();
  return status === undefined || !name.includes("::") ? undefined : { name, status };
}

const OPEN = "[".charCodeAt(0);

function isNodeId(word: string): boolean {
  return word.includes("::") || word.includes("/") || word.endsWith(".py");
}

function firstWord(text: string): string {
  const end = text.indexOf(" ");
  return end < 0 ? text : text.slice(0, end);
}

function splitReason(rest: string, status: LoggedStatus): PytestResult {
  const dash = rest.indexOf(REASON);
  if (dash < 0) return { name: rest, status };
  const bracket = rest.indexOf("[");
  let end = dash;
  if (bracket >= 0 && bracket < dash) {
    const close = rest.indexOf(`]${REASON}`, bracket);
    if (close >= 0) end = close + 1;
    else if (rest.endsWith("]")) return { name: rest, status };
  }
  return { name: rest.slice(0, end), status, reason: rest.slice(end + REASON.length) };
}
