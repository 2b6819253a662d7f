/** Owns reading the outputs of one session by the parser of the record: the log, and the channel printed as one. */
import { type Grade, type GradingRecord, LogGrader, type LoggedStatus } from "@mortise/grading";
import type { ChannelReport } from "./channel.js";
import type { Runner } from "./runner.js";

export interface Reading {
  readonly grade: Grade;
  /** Of a name of the record; undefined when it has no result. */
  readonly statusOf: (name: string) => LoggedStatus | undefined;
}

export function readLogText(record: GradingRecord, log: string): Reading {
  const grader = new LogGrader(record);
  grader.write(log);
  return { grade: grader.end(), statusOf: (name) => grader.statusOf(name) };
}

export function gradeReport(record: GradingRecord, runner: Runner, channel: ChannelReport): Reading {
  const lines = runner.asLog(channel, record.parser.name);
  return readLogText(record, [">>>>> Start Test Output", ...lines, ">>>>> End Test Output", ""].join("\n"));
}
