/**
 * Owns grading one log against one record, in one pass and in bounded memory: text in, a verdict out. The
 * rules are in rules.ts, the marks in log/markers.ts, the results in parsers/.
 *
 * The output of the tests is read by one parser; what stands before and behind it by two more, only to tell
 * results that came from somewhere else (rules.ts, R5).
 */
import { LogBytes } from "./log/bytes.js";
import { InfrastructureSigns } from "./log/infrastructure.js";
import { FirstCharacters, forEachLine, LineBlocks } from "./log/lines.js";
import { aroundArrows, MARK_START, Markers } from "./log/markers.js";
import { SuiteProof } from "./log/suite-proof.js";
import type { LogParser } from "./parsers/types.js";
import type { GradingRecord } from "./record/record.js";
import { Observations } from "./results/observations.js";
import type { LoggedStatus } from "./results/status.js";
import { type Grade, judgeLog } from "./rules.js";

/** One stretch of a log and the parser that reads it. */
interface Stretch {
  readonly seen: Observations;
  readonly parser: LogParser;
  /** First characters of lines that its parser or the marks may want; undefined for all lines. */
  readonly starts: FirstCharacters | undefined;
}

export class LogGrader {
  readonly #record: GradingRecord;
  readonly #markers = new Markers();
  readonly #before: Stretch;
  readonly #inside: Stretch;
  readonly #after: Stretch;
  readonly #signs = new InfrastructureSigns();
  readonly #proof: SuiteProof | undefined;
  readonly #lines: LineBlocks;
  readonly #bytes: LogBytes;

  constructor(record: GradingRecord) {
    this.#record = record;
    const expected = new Set([...record.failToPass, ...record.passToPass]);
    this.#before = stretch(record, expected);
    this.#inside = stretch(record, expected);
    this.#after = stretch(record, expected);
    this.#proof = record.printsFailuresOnly ? new SuiteProof() : undefined;
    this.#lines = new LineBlocks((block) => this.#block(block));
    this.#bytes = new LogBytes((text) => this.#lines.write(text));
  }

  /** Takes the next piece of the log, cut anywhere. */
  write(text: string): void {
    this.#lines.write(text);
  }

  /** Takes the next piece of the log as bytes. A log is given as bytes or as text, not as both. */
  writeBytes(bytes: Uint8Array): void {
    this.#bytes.write(bytes);
  }

  /** The verdict on everything written. */
  end(): Grade {
    this.#bytes.end();
    this.#lines.end();
    for (const { parser } of [this.#before, this.#inside, this.#after]) parser.end?.();
    return judgeLog(this.#record, {
      markers: this.#markers,
      before: this.#before.seen,
      inside: this.#inside.seen,
      after: this.#after.seen,
      signs: () => this.#signs.read(),
      hasSuiteRun: this.#proof?.isGiven,
    });
  }

  /** What the output of the tests says of one test; undefined when it has no result. After `end()`. */
  statusOf(name: string): LoggedStatus | undefined {
    return this.#inside.seen.tests.find(name);
  }

  #stretchAt(place: Markers["place"]): Stretch {
    if (place === "inside") return this.#inside;
    return place === "before" ? this.#before : this.#after;
  }

  #block(block: string): void {
    if (this.#markers.place !== "after" && this.#inside.seen.tests.size === 0) this.#signs.keep(block);
    for (const [plain, line] of aroundArrows(block)) {
      const { place } = this.#markers;
      // The proof that a suite ran may stand on any line.
      const starts = this.#proof === undefined ? this.#stretchAt(place).starts : undefined;
      forEachLine(plain, (one) => this.#line(place, one), starts);
      if (line !== undefined) this.#marked(line);
    }
  }

  #line(place: Markers["place"], line: string): void {
    if (line.charCodeAt(0) === MARK_START) this.#marked(line);
    else this.#read(place, line);
  }

  #marked(line: string): void {
    const { place } = this.#markers;
    const rest = this.#markers.read(line);
    if (rest !== undefined) this.#read(place, rest);
  }

  #read(place: Markers["place"], line: string): void {
    const { parser } = this.#stretchAt(place);
    parser.line(line);
    this.#proof?.line(line);
  }
}

function stretch({ parser, instance }: GradingRecord, expected: ReadonlySet<string>): Stretch {
  const seen = new Observations();
  const made = parser.create(seen, { instance, expected });
  const starts = made.starts === undefined ? undefined : new FirstCharacters([...made.starts, MARK_START]);
  return { seen, parser: made, starts };
}

/** Grades a log that is in memory. */
export function gradeLog(record: GradingRecord, log: string): Grade {
  const grader = new LogGrader(record);
  grader.write(log);
  return grader.end();
}
