/**
 * Owns what a test runner with a channel is: how its command is told, how the channel is given to it, and how what it
 * reports is printed for the parser of the record. The runners are in runners/.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { MountedFilesSchema } from "@mortise/contracts";
import type { ChannelReport } from "./channel.js";

export interface Runner {
  /** Kept in evidence. */
  readonly name: string;
  /** Parsers of packages/grading that read what `asLog` prints. */
  readonly parsers: ReadonlySet<string>;
  /** How often one line of a command calls it, directly. */
  readonly callsIn: (line: string) => number;
  /** Whether two tests that must end in a known way run inside its session. */
  readonly hasCanaries: boolean;
  readonly mount: Mount;
  /** The variable its channel comes by: a command that sets it anew would take the channel away. */
  readonly variable: string;
  /** Shell, before the tests' own command; descriptors are named there already. */
  readonly exports: readonly string[];
  /** The lines of a session that printed exactly these results. */
  readonly asLog: (report: ChannelReport, parser: string) => readonly string[];
}

export type Mount = Exclude<MessageInitShape<typeof MountedFilesSchema>, { $typeName: string }>;

/** Runners that give theirs another environment, or more than one of them. */
const INDIRECT = /(?:^|\s)(?:tox|nox|nosetests)(?=\s|$)/;

/** The one runner a command calls, once and directly, whose results the parser reads; undefined where there is none. */
export function runnerOf(runners: readonly Runner[], tests: string, parser: string): Runner | undefined {
  const lines = tests.split("\n").filter((line) => !line.trimStart().startsWith("#"));
  if (lines.some((line) => INDIRECT.test(line))) return undefined;
  const called = runners.filter(({ callsIn }) => lines.some((line) => callsIn(line) > 0));
  const [runner] = called;
  if (runner === undefined || called.length > 1 || !runner.parsers.has(parser)) return undefined;
  const sets = new RegExp(`\\b${runner.variable}=(?![^;&|]*\\$\\{?${runner.variable}\\b)`);
  if (lines.some((line) => sets.test(line))) return undefined;
  return lines.reduce((sum, line) => sum + runner.callsIn(line), 0) === 1 ? runner : undefined;
}
