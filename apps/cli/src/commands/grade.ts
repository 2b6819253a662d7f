/**
 * Owns `mortise grade`: one record of a data set and one log to a verdict. Reads files; the rules are in
 * packages/grading.
 */
import type { Grade } from "@mortise/grading";
import { LogGrader, readRecord } from "@mortise/grading";
import type { Command } from "commander";
import { readLog } from "../grading/log-file.js";
import { readRecordFile } from "../grading/record-file.js";
import { type OutputOptions, printResult } from "../output.js";

interface Flags {
  readonly record: string;
  readonly log: string;
  readonly parser?: string;
}

export function addGrade(program: Command, output: () => OutputOptions): void {
  program
    .command("grade")
    .description("grade the log of a test run against a record of a data set")
    .requiredOption("--record <file>", "the record: file.json, or file.jsonl:INSTANCE_ID")
    .requiredOption("--log <file>", "the log, plain or gzip")
    .option("--parser <name>", "read the log with this parser instead of the record's: name or name/version")
    .action(async ({ record: place, log, parser }: Flags) => {
      const { value, source } = await readRecordFile(place);
      const grader = new LogGrader(readRecord(value, source, parser === undefined ? {} : { parser }));
      await readLog(log, (bytes) => grader.writeBytes(bytes));
      const grade = grader.end();
      printResult(output(), grade, () => table(grade));
    });
}

function table({ instance, verdict, failToPass, passToPass, parser, reasons }: Grade): readonly string[] {
  const lists = [
    ["FAIL_TO_PASS", failToPass],
    ["PASS_TO_PASS", passToPass],
  ] as const;
  return [
    `${instance}: ${verdict}`,
    `  parser        ${parser}`,
    ...lists.map(
      ([name, { passed, failed }]) =>
        `  ${name}  ${passed.length} of ${passed.length + failed.length} passed`,
    ),
    ...lists.flatMap(([name, { failed }]) => failed.map((test) => `  not passed    ${name} ${test}`)),
    ...reasons.map((reason) => `  because       ${reason}`),
  ];
}
